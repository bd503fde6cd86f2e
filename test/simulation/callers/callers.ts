import type { LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { LockManager } from '../../../lib/core/service/lock-manager.js';
import { defaultCall } from '../../../lib/core/settings/lock-call.js';
import type { Agenda } from '../engine/agenda.js';
import type { Random } from '../engine/random.js';
import type { SimProcess } from '../engine/sim-process.js';
import type { Visit } from './visit.js';
import type { Witness } from './witness.js';

/** A process with its lock service. */
export interface Served {
  readonly process: SimProcess;
  readonly manager: LockManager;
}

/** What the callers of a run have in common. */
export interface CallerHost {
  readonly agenda: Agenda;
  readonly witness: Witness;
  readonly random: Random;
  /** Notes what became of a visit. */
  report(code: string, who: string): void;
}

/** One caller: its visits, one after the other. */
export const callerOf = async (
  served: Served,
  visits: readonly Visit[],
  who: string,
  host: CallerHost,
): Promise<void> => {
  const { process } = served;
  for (const visit of visits) {
    const restMs = (visit.at ?? 0) - process.momentOf(process.now());
    if (restMs > 0) await process.sleep(restMs);
    if (visit.thinkMs > 0) await process.sleep(visit.thinkMs);
    await visitOnce(served, visit, who, host);
  }
};

/** Acquires the key, works, and releases it. */
export const visitOnce = async (
  { process, manager }: Served,
  { key, permits, waitMs, workMs }: Visit,
  who: string,
  { witness, random, report }: CallerHost,
): Promise<void> => {
  const common = { ...defaultCall(manager.settings), waitMs };
  const call = permits === undefined ? common : { ...common, kind: 'permit' as const, permits };
  const wantedSince = process.at;
  try {
    const lease = await manager.acquire([key], call);
    const holding = witness.enters({
      who,
      key,
      token: permits === undefined ? lease.fencingToken : undefined,
      permits: permits ?? 1,
      wantedSince,
      validUntil: () => {
        if (process.crashed) return 0;
        const local = process.now();
        const leftMs = lease.remainingMs();
        return leftMs > 0 ? process.momentOf(local + leftMs) : 0;
      },
    });
    const endAt = process.now() + workMs;
    while (!lease.lost && process.now() < endAt) {
      await process.sleep(Math.min(5 + random.next() * 50, workMs));
      if (lease.remainingMs() > 0) holding.writes();
    }
    holding.leaves();
    report(await lease.release(), who);
  } catch (error) {
    // The classes of a copy with a mistake are others.
    const { code, outcome } = error as Partial<LockStoreError>;
    if (code === 'LOCK_TAKEN') return report('taken', who);
    if (code === 'LOCK_STORE_FAILED') return report(`failed, ${outcome}`, who);
    if (code === 'LOCK_LOST') return report('lost at once', who);
    throw error;
  }
};

const EVENTS = [
  ...(['acquired', 'busy', 'waiting', 'slow-hold', 'released', 'lost'] as const),
  ...(['revocation-requested', 'store-down', 'store-up'] as const),
];

/** Lets the witness note the events of a process. */
export const noteEvents = ({ process, manager }: Served, witness: Pick<Witness, 'note'>): void => {
  for (const name of EVENTS)
    manager.on(name, (event) => {
      const { cause: _, ...told } = event as { cause?: unknown };
      witness.note(process.name, `${name} ${JSON.stringify(told)}`);
    });
};

/** Starts a visit in a process. The function that it returns says whether the visit is over. */
export const begin = (served: Served, visit: Visit, who: string, host: CallerHost): (() => boolean) => {
  let over = false;
  served.process.arrive(() => void visitOnce(served, visit, who, host).then(() => (over = true)));
  return () => over;
};

/** When all is well again, every process gets each key. */
export const serveAll = async (
  served: readonly Served[],
  visits: readonly Visit[],
  pauseMs: number,
  host: CallerHost,
): Promise<void> => {
  const { agenda, witness } = host;
  const firsts = new Map(visits.map((visit) => [visit.key, visit]));
  for (const one of served) {
    if (one.process.crashed) continue;
    for (const [key, { permits }] of firsts) {
      const before = witness.grants;
      const visit = { key, ...(permits && { permits }), thinkMs: 0, waitMs: 20_000, workMs: 1 };
      // The first request may find out only that all is well again.
      for (let tries = 0; tries < 3 && witness.grants === before; tries++) {
        const isOver = begin(one, visit, 'afterwards', host);
        await agenda.pass(agenda.now + 30_000, isOver);
        await agenda.pass(agenda.now + pauseMs);
      }
      if (witness.grants === before)
        witness.report('nobody', `${one.process.name} does not get ${key} afterwards`);
    }
  }
};
