import { Random } from '../engine/random.js';
import type { Visit } from '../callers/visit.js';
import { anyFault, TROUBLE_MS, unknownOutcome, type Cast, type SqlFault } from './sql-faults.js';

/** How waiters learn of a release: by polling and a bell, as in MySQL, or by notifications, as in PostgreSQL. */
export type SqlMode = 'polling' | 'notifications';

export interface SqlPlan {
  readonly seed: number;
  readonly mode: SqlMode;
  /** Whether a proxy shares connections: then an undo is never certain, and there are no wake-ups. */
  readonly pooled: boolean;
  /** How fast the clock of the server runs: no faster than those of processes, since a lease has no allowance for drift. */
  readonly rate: number;
  readonly lanes: number;
  readonly processes: readonly { readonly rate: number; readonly callers: readonly (readonly Visit[])[] }[];
  readonly watchdogMs: number;
  readonly commandTimeoutMs: number;
  readonly latencyMs: readonly [number, number];
  readonly faults: readonly SqlFault[];
  /** When the last fault is over. */
  readonly troubleMs: number;
  /** Whether wake-ups get lost when all else is well again: then waiters have only their polls. */
  readonly losesWakeUps: boolean;
}

/** The last key has permits. */
const KEYS = ['a', 'b', 'permits'];
/** Keys that one statement can have together. */
const MANY_KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'permits'];
const PERMITS = 2;

/** From a seed to a plan, as plain data. */
export const sqlPlan = (seed: number): SqlPlan => {
  const random = new Random(`sql ${seed}`);
  const keys = random.pick([['a'], ['a', 'b'], KEYS, MANY_KEYS]);
  const areMany = keys === MANY_KEYS;
  const visit = (): Visit => {
    const key = random.pick(keys);
    return {
      key,
      ...(key === 'permits' && { permits: PERMITS }),
      thinkMs: random.pick(areMany ? [0, 0, 1] : [0, 1, 5, 50, 300]),
      waitMs: random.pick([0, 100, 1_000, 5_000]),
      workMs: random.pick(areMany ? [0, 0, 1, 5] : [0, 1, 5, 20, 20, 200, 1_200]),
    };
  };
  const caller = (): Visit[] => Array.from({ length: random.whole(2, 6) }, visit);
  const processes = Array.from({ length: random.whole(2, 4) }, () => ({
    rate: random.between(0.998, 1.002),
    callers: Array.from({ length: areMany ? 6 : random.whole(1, 3) }, caller),
  }));
  const commandTimeoutMs = random.pick([100, 300]);
  const cast: Cast = { processes: processes.length, keys, timeoutMs: commandTimeoutMs };
  const scenes = Array.from({ length: random.whole(0, 4) }, () => unknownOutcome(random, cast));
  const others = Array.from({ length: random.whole(0, 6) }, () => anyFault(random, cast));
  const faults = [...scenes.flat(), ...others, ...clockStep(random)];
  return {
    seed,
    mode: random.pick(['polling', 'notifications']),
    pooled: random.chance(0.1),
    rate: random.between(0.994, 0.998),
    lanes: areMany ? 1 : random.pick([1, 2, 4]),
    processes,
    watchdogMs: random.pick([1_000, 1_000, 20_000]),
    commandTimeoutMs,
    latencyMs: random.pick([
      [0.2, 0.6],
      [0.5, 3],
      [1, 20],
    ] as const),
    faults,
    troubleMs: Math.max(TROUBLE_MS, ...faults.map(endOf)),
    losesWakeUps: random.chance(0.3),
  };
};

/** One step of the clock in some plans, never while it would hide the rest: tokens grow over each. */
const clockStep = (random: Random): readonly SqlFault[] => {
  if (!random.chance(0.2)) return [];
  const aheadMs = random.pick([-2_000, -300, -20, 20, 300, 3_600_000]);
  return [{ kind: 'clock', at: random.between(500, TROUBLE_MS - 3_000), aheadMs }];
};

const endOf = (fault: SqlFault): number => fault.at + ('forMs' in fault ? fault.forMs : 0);
