import type { Random } from '../engine/random.js';
import type { StatementName } from './sim-database.js';

/** A fault of one process, or between it and the database. */
type ProcessFault =
  /** The next request of this name never arrives, or its reply never does. Unnoticed, until the time-out. */
  | { readonly kind: 'lost-request' | 'lost-reply'; readonly of: StatementName; readonly isNoticed: boolean }
  /** Connections break: all of them, or some. What is on its way arrives later, or never. */
  | { readonly kind: 'cut'; readonly isAll: boolean; readonly lateMs: number | undefined }
  /** Nothing gets through any more on all open connections, and neither end notices. */
  | { readonly kind: 'mute' }
  /** Nothing gets through for a time; what was on its way comes after that. */
  | { readonly kind: 'silence'; readonly forMs: number }
  | { readonly kind: 'slow'; readonly forMs: number; readonly extraMs: number }
  /** At a step of the process's code, or at a time. */
  | { readonly kind: 'pause'; readonly forMs: number; readonly step?: number }
  | { readonly kind: 'crash'; readonly step?: number };

/** A fault of the database. */
type DatabaseFault =
  /** The next statement of this name is executed so much later. */
  | { readonly kind: 'slow-statement'; readonly of: StatementName; readonly ms: number }
  /** Sessions that are to be ended commit the statement under way instead. */
  | { readonly kind: 'stubborn'; readonly count: number }
  | { readonly kind: 'refuse'; readonly forMs: number }
  | { readonly kind: 'restart'; readonly downMs: number }
  /** The clock steps. Below zero: back. */
  | { readonly kind: 'clock'; readonly aheadMs: number }
  /** A transaction of others locks the row of a key. */
  | { readonly kind: 'row-lock'; readonly key: string; readonly forMs: number };

/** What goes wrong. Times in ms since the beginning. */
export type SqlFault = { readonly at: number } & (
  DatabaseFault | (ProcessFault & { readonly process: number })
);

/** When the faults are over; longer ones say so. */
export const TROUBLE_MS = 8_000;

export interface Cast {
  readonly processes: number;
  readonly keys: readonly string[];
  readonly timeoutMs: number;
}

const STATEMENTS = ['acquire', 'acquire', 'release', 'extend', 'peek', 'leave', 'settle', 'wake-up'] as const;

/** More faults at the beginning, when most callers are at work. */
const timeOf = (random: Random): number => random.between(0, random.pick([500, 2_000, TROUBLE_MS - 2_500]));

/** Any fault. */
export const anyFault = (random: Random, { processes, keys, timeoutMs }: Cast): SqlFault => {
  const at = timeOf(random);
  const process = random.whole(0, processes - 1);
  const forMs = random.pick([5, 50, 400, 2_000]);
  const of = random.pick(STATEMENTS);
  const step = random.chance(0.7) ? { step: random.whole(1, 1_500) } : {};
  const kind = random.pick([
    ...(['lost-request', 'lost-reply', 'lost-reply', 'cut', 'cut', 'mute', 'silence', 'slow'] as const),
    ...(['pause', 'pause', 'crash', 'slow-statement', 'slow-statement', 'stubborn'] as const),
    ...(['refuse', 'restart', 'row-lock', 'row-lock'] as const),
  ]);
  switch (kind) {
    case 'lost-request':
    case 'lost-reply':
      return { kind, at, process, of, isNoticed: random.chance(0.4) };
    case 'cut':
      return { kind, at, process, isAll: random.chance(0.5), lateMs: random.pick([undefined, 10, 300]) };
    case 'mute':
      return { kind, at, process };
    case 'silence':
      return { kind, at, process, forMs };
    case 'slow':
      return { kind, at, process, forMs, extraMs: random.pick([30, 90, 250]) };
    case 'pause':
      return { kind, at, process, forMs: random.pick([20, 300, 1_200, 2_500]), ...step };
    case 'crash':
      return { kind, at, process, ...step };
    case 'slow-statement':
      return { kind, at, of, ms: timeoutMs * random.pick([0.5, 0.95, 1.5, 4]) };
    case 'stubborn':
      return { kind, at, count: random.whole(1, 3) };
    case 'refuse':
      return { kind, at, forMs };
    case 'restart':
      return { kind, at, downMs: random.pick([1, 20, 300, 1_500]) };
    case 'row-lock':
      return { kind, at, key: random.pick(keys), forMs: random.pick([20, 150, 600, 2_000]) };
  }
};

/** An acquire whose outcome is unknown, and an undo that meets further faults. */
export const unknownOutcome = (random: Random, { processes, keys, timeoutMs }: Cast): SqlFault[] => {
  const at = timeOf(random);
  const process = random.whole(0, processes - 1);
  const isNoticed = random.chance(0.5);
  const first: SqlFault = random.pick<SqlFault>([
    { kind: 'lost-reply', at, process, of: 'acquire', isNoticed },
    { kind: 'slow-statement', at, of: 'acquire', ms: timeoutMs * random.between(1.05, 6) },
    { kind: 'row-lock', at, key: random.pick(keys), forMs: timeoutMs * random.between(1.05, 6) },
    { kind: 'slow', at, process, forMs: random.between(50, 300), extraMs: timeoutMs * 2 },
  ]);
  const others: readonly SqlFault[] = [
    { kind: 'lost-request', at, process, of: 'settle', isNoticed },
    { kind: 'lost-reply', at, process, of: 'settle', isNoticed },
    { kind: 'lost-reply', at, process, of: 'release', isNoticed },
    { kind: 'slow-statement', at: at + 1, of: 'settle', ms: timeoutMs * random.between(0.5, 3) },
    { kind: 'stubborn', at, count: random.whole(1, 3) },
    { kind: 'refuse', at: at + timeoutMs, forMs: timeoutMs * random.between(0.5, 3) },
  ];
  return [first, ...others.filter(() => random.chance(0.3))];
};
