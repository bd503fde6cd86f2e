import { setTimeout as sleep } from 'node:timers/promises';
import type { ProxyConnection } from '../../support/tcp-proxy.js';
import { labNow } from '../history/lab-clock.js';
import { AFTERMATH } from '../settings.js';
import type { Pace } from '../topology/slow-link.js';
import type { Role, Seat } from '../topology/seat.js';
import type { Topology } from '../topology/topology.js';
import { anySeat, fault, isRedis, linkOf, namesOf, someSeats, type Dose, type Fault } from './fault.js';
import type { ScriptName } from './scripts.js';

interface OnLinks extends Dose {
  readonly seats: readonly number[];
}

const targets = ({ seats }: OnLinks): string[] => seats.map(linkOf);
const everywhere = (): boolean => true;

const seatsOf = (topology: Topology, { seats }: OnLinks): Seat[] =>
  seats.map((seat) => topology.seats[seat]!);

/** Writes down that these workers are in trouble from now until so long after the fault. */
const troubled = (topology: Topology, dose: OnLinks, what: string, aftermathMs: number): void => {
  const from = labNow();
  for (const { life } of seatsOf(topology, dose).filter(({ isTaken }) => isTaken)) {
    topology.scribe.trouble(what, from, from + dose.forMs + aftermathMs, life.name);
  }
};

const delay = fault<OnLinks & { readonly delayMs: number }>({
  name: 'delay',
  weight: 2,
  fits: everywhere,
  choose: (random, fitness) => ({
    seats: someSeats(random, fitness),
    delayMs: random.whole(2, 200),
    forMs: random.whole(200, 2_000),
  }),
  targets,
  describe: ({ seats, delayMs, forMs }) =>
    `everything takes ${delayMs} ms longer for ${namesOf(seats)}, ${forMs} ms`,
  async inflict(topology, dose) {
    // A delay of more than the time-out of a command is an outage.
    troubled(topology, dose, 'delay', AFTERMATH.outage);
    for (const { link } of seatsOf(topology, dose)) link.delay(dose.delayMs);
    await sleep(dose.forMs);
    for (const { link } of seatsOf(topology, dose)) await link.restore();
  },
});

const slow = (name: string, weight: number, paceOf: (kind: number) => Pace): Fault =>
  fault<OnLinks & { readonly pace: Pace }>({
    name,
    weight,
    fits: everywhere,
    choose: (random, fitness) => ({
      seats: someSeats(random, fitness),
      pace: paceOf(random.next()),
      forMs: random.whole(300, 2_000),
    }),
    targets,
    describe: ({ seats, pace, forMs }) =>
      `${pace.pieceBytes} bytes at a time, every ${pace.pauseMs} ms, for ${namesOf(seats)}, ${forMs} ms`,
    async inflict(topology, dose) {
      troubled(topology, dose, name, AFTERMATH.outage);
      for (const { link } of seatsOf(topology, dose)) link.setPace(dose.pace);
      await sleep(dose.forMs);
      for (const { link } of seatsOf(topology, dose)) link.setPace(undefined);
    },
  });

const split = slow('split replies', 2, (kind) => ({ pieceBytes: 1 + Math.floor(kind * 7), pauseMs: 0 }));
const throttle = slow('throttle', 1, (kind) => ({ pieceBytes: 20 + Math.floor(kind * 100), pauseMs: 2 }));

const cut = fault<OnLinks & { readonly role: Role | 'both' }>({
  name: 'cut',
  weight: 3,
  fits: everywhere,
  choose: (random, fitness) => ({
    seats: someSeats(random, fitness),
    role: random.pick(['both', 'commands', 'subscriber'] as const),
    forMs: 0,
  }),
  targets,
  describe: ({ seats, role }) => `connections are reset (${role}) for ${namesOf(seats)}`,
  async inflict(topology, dose) {
    troubled(topology, dose, `reset (${dose.role})`, AFTERMATH.cut);
    for (const seat of seatsOf(topology, dose).filter(({ isTaken }) => isTaken)) {
      if (dose.role === 'both') seat.link.cut();
      else for (const connection of seat.connections(dose.role)) connection.cut();
    }
  },
});

const refuse = fault<OnLinks>({
  name: 'refuse',
  weight: 2,
  fits: everywhere,
  choose: (random, fitness) => ({ seats: someSeats(random, fitness), forMs: random.whole(50, 1_500) }),
  targets,
  describe: ({ seats, forMs }) => `connections are reset and refused for ${namesOf(seats)}, ${forMs} ms`,
  async inflict(topology, dose) {
    troubled(topology, dose, 'unreachable', AFTERMATH.outage);
    for (const { link } of seatsOf(topology, dose)) {
      link.refuse();
      link.cut();
    }
    await sleep(dose.forMs);
    for (const { link } of seatsOf(topology, dose)) await link.restore();
  },
});

const halfOpen = fault<OnLinks & { readonly role: Role | 'all' }>({
  name: 'half-open',
  weight: 3,
  fits: everywhere,
  choose: (random, fitness) => ({
    seats: [anySeat(random, fitness)],
    role: random.pick(['all', 'commands', 'subscriber'] as const),
    forMs: random.whole(200, 2_500),
  }),
  targets,
  describe: ({ seats, role, forMs }) =>
    `nothing gets through (${role}) for ${namesOf(seats)}, ${forMs} ms; what was sent then arrives`,
  async inflict(topology, dose) {
    const [seat] = seatsOf(topology, dose);
    if (!seat?.isTaken) return;
    const { role } = dose;
    const aftermath = role === 'subscriber' ? AFTERMATH.silentSubscriber : AFTERMATH.outage;
    troubled(topology, dose, `half-open (${role})`, aftermath);
    let silenced: readonly ProxyConnection[] = [];
    if (role === 'all') seat.link.blackhole();
    else for (const connection of (silenced = seat.connections(role))) connection.blackhole();
    await sleep(dose.forMs);
    if (role === 'all') await seat.link.restore();
    else for (const connection of silenced) connection.restore();
  },
});

const swallow = fault<OnLinks & { readonly script: ScriptName }>({
  name: 'swallow reply',
  weight: 6,
  fits: everywhere,
  choose: (random, fitness) => ({
    seats: [anySeat(random, fitness)],
    script: random.pick([
      'acquire',
      'acquire',
      'release',
      'extend',
      'keep',
      'take',
      'give',
      'countDown',
    ] as const),
    forMs: 1_000,
  }),
  targets,
  describe: ({ seats, script }) => `the next ${script} of ${namesOf(seats)} is done, and its answer lost`,
  async inflict(topology, dose) {
    const [seat] = seatsOf(topology, dose);
    if (!seat) return;
    const stop = seat.atNext(dose.script, (connection) => {
      troubled(topology, { ...dose, forMs: 0 }, `answer lost (${dose.script})`, AFTERMATH.silentCommands);
      connection.swallowReplies();
    });
    await sleep(dose.forMs);
    stop();
  },
});

const cutAtGrant = fault<OnLinks & { readonly role: Role | 'both' }>({
  name: 'cut at a grant',
  weight: 3,
  // Only Redis grants turns, and a quorum does not.
  fits: (fitness) => isRedis(fitness) && fitness.shape !== 'quorum',
  choose: (random, fitness) => ({
    seats: [anySeat(random, fitness)],
    role: random.pick(['both', 'subscriber'] as const),
    forMs: 1_000,
  }),
  targets,
  describe: ({ seats, role }) => `connections are reset (${role}) as ${namesOf(seats)} is told of its turn`,
  async inflict(topology, dose) {
    const [seat] = seatsOf(topology, dose);
    if (!seat) return;
    const stop = seat.atNextGrant((connection) => {
      troubled(topology, { ...dose, forMs: 0 }, `reset at a grant (${dose.role})`, AFTERMATH.lostGrant);
      if (dose.role === 'both') seat.link.cut();
      else connection.cut();
    });
    await sleep(dose.forMs);
    stop();
  },
});

export const LINK_FAULTS: readonly Fault[] = [
  delay,
  split,
  throttle,
  cut,
  refuse,
  halfOpen,
  swallow,
  cutAtGrant,
];
