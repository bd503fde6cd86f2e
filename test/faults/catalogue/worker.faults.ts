import { setTimeout as sleep } from 'node:timers/promises';
import { labNow } from '../history/lab-clock.js';
import { AFTERMATH, SETTINGS } from '../settings.js';
import type { Seat } from '../topology/seat.js';
import { anySeat, fault, processOf, type Dose, type Fault } from './fault.js';
import type { ScriptName } from './scripts.js';

interface OnWorker extends Dose {
  readonly seat: number;
}

/** When: while it holds and waits, as it always does, as it asks, renews or releases, or as its turn comes. */
type Moment = 'now' | 'grant' | ScriptName;

const MOMENTS: readonly Moment[] = [
  'now',
  'now',
  'acquire',
  'extend',
  'release',
  'keep',
  'grant',
  'grant',
  'give',
];
/** How long a moment is waited for, in ms. */
const PATIENCE_MS = 600;

const targets = ({ seat }: OnWorker): string[] => [processOf(seat)];
const everywhere = (): boolean => true;
const said = (moment: Moment): string => (moment === 'now' ? '' : ` at its next ${moment}`);

const watch = (seat: Seat, moment: Moment, act: () => void): (() => void) => {
  if (moment === 'now') return () => undefined;
  return moment === 'grant' ? seat.atNextGrant(act) : seat.atNext(moment, act);
};

/** Does it at that moment, or when that does not come. */
const at = (seat: Seat, moment: Moment, action: () => void): Promise<void> =>
  new Promise((resolve) => {
    const act = (): void => {
      stop();
      clearTimeout(timer);
      action();
      resolve();
    };
    const timer = setTimeout(act, moment === 'now' ? 0 : PATIENCE_MS);
    const stop = watch(seat, moment, act);
  });

const stop = fault<OnWorker & { readonly moment: Moment }>({
  name: 'SIGSTOP worker',
  weight: 3,
  fits: everywhere,
  choose: (random, fitness) => ({
    seat: anySeat(random, fitness),
    moment: random.pick(MOMENTS),
    forMs: random.chance(0.6)
      ? random.whole(SETTINGS.watchdogMs + 100, 2 * SETTINGS.watchdogMs)
      : random.whole(50, SETTINGS.watchdogMs),
  }),
  targets,
  describe: ({ seat, moment, forMs }) => `${processOf(seat)} is stopped for ${forMs} ms${said(moment)}`,
  async inflict({ seats, scribe }, { seat: number, moment, forMs }) {
    const seat = seats[number]!;
    if (!seat.isTaken) return;
    const { process, name } = seat.life;
    await at(seat, moment, () => {
      const from = labNow();
      scribe.trouble('stopped', from, from + forMs + AFTERMATH.standstill, name);
      void process.kill('SIGSTOP');
    });
    await sleep(forMs);
    await process.kill('SIGCONT');
  },
});

const kill = fault<OnWorker & { readonly moment: Moment }>({
  name: 'SIGKILL worker',
  weight: 3,
  fits: everywhere,
  choose: (random, fitness) => ({
    seat: anySeat(random, fitness),
    moment: random.pick(MOMENTS),
    forMs: random.whole(0, 600),
  }),
  targets,
  describe: ({ seat, moment, forMs }) =>
    `${processOf(seat)} is killed${said(moment)}, and another takes its place after ${forMs} ms`,
  async inflict({ seats }, { seat: number, moment, forMs }) {
    const seat = seats[number]!;
    if (!seat.isTaken) return;
    let gone: Promise<void> | undefined;
    await at(seat, moment, () => {
      gone = seat.kill();
    });
    await gone;
    await sleep(forMs);
    await seat.fill();
  },
});

const block = fault<OnWorker>({
  name: 'blocked event loop',
  weight: 2,
  fits: everywhere,
  choose: (random, fitness) => ({
    seat: anySeat(random, fitness),
    forMs: random.chance(0.6)
      ? random.whole(SETTINGS.watchdogMs + 100, 2 * SETTINGS.watchdogMs)
      : random.whole(50, SETTINGS.watchdogMs),
  }),
  targets,
  describe: ({ seat, forMs }) => `the event loop of ${processOf(seat)} is blocked for ${forMs} ms`,
  async inflict({ seats, scribe }, { seat: number, forMs }) {
    const seat = seats[number]!;
    if (!seat.isTaken) return;
    const from = labNow();
    scribe.trouble('blocked', from, from + forMs + AFTERMATH.standstill, seat.life.name);
    seat.life.process.send({ type: 'block', ms: forMs });
    await sleep(forMs);
  },
});

/** Nobody may feel this at all. */
const jump = fault<OnWorker & { readonly jumpMs: number }>({
  name: 'wall clock of a worker jumps',
  weight: 2,
  fits: everywhere,
  choose: (random, fitness) => ({
    seat: anySeat(random, fitness),
    jumpMs: random.pick([-1, 1]) * random.whole(1_000, 100_000),
    forMs: 0,
  }),
  targets,
  describe: ({ seat, jumpMs }) => `the wall clock of ${processOf(seat)} is set by ${jumpMs} ms`,
  async inflict({ seats, scribe }, { seat: number, jumpMs }) {
    const seat = seats[number]!;
    if (!seat.isTaken) return;
    scribe.note(`the wall clock of ${seat.life.name} is set by ${jumpMs} ms`);
    seat.life.process.send({ type: 'jump', ms: jumpMs });
  },
});

export const WORKER_FAULTS: readonly Fault[] = [stop, kill, block, jump];
