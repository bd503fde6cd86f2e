import { LockAbortedError, LockLostError, LockNotAcquiredError, type LockService } from 'nest-redis-lock';
import type { Door, Occupancy } from '../measure/occupancy.js';

/**
 * How a cycle ended. Whichever it was, nothing is held and nobody waits any more. Only of those that say `expired` the
 * store may have had to end a hold by itself.
 */
export type Ending = 'held' | 'refused' | 'timedOut' | 'aborted' | 'lost' | 'expired';

export const noEndings = (): Record<Ending, number> => ({
  held: 0,
  refused: 0,
  timedOut: 0,
  aborted: 0,
  lost: 0,
  expired: 0,
});

/** What a cycle is run with. */
export interface Caller {
  readonly locks: LockService;
  /** A service of another process, as far as Redis can tell. */
  readonly others: LockService;
  /** Lives as long as the process, as a server's shutdown signal does: a listener left on it is a leak. */
  readonly longLived: AbortSignal;
  readonly occupancy: Occupancy;
  /** Counts up over all callers. */
  readonly n: number;
}

/** One way of using locks, from the beginning to the end. Errors that are endings may be thrown. */
export type Cycle = (caller: Caller) => Promise<Ending>;

export const SHORT_WAIT_MS = 2;
export const LONG_WAIT_MS = 60_000;

const HOT_KEYS = 10;
const COLD_KEYS = 10_000;

/** A key that many want. */
export const hotKey = (n: number): string => `hot-${n % HOT_KEYS}`;

/** A key that is seldom used, but again and again. */
export const coldKey = (n: number): string => `cold-${(n * 7_919) % COLD_KEYS}`;

/** A key that is used this once. */
export const newKey = (n: number): string => `once-${process.pid}-${n}`;

/** Work on a key, which nobody else may do meanwhile, or not more than the door lets in. */
export const inside =
  (door: Door, ...keys: readonly string[]) =>
  async (): Promise<'held'> => {
    for (const key of keys) door.enter(key);
    await Promise.resolve();
    for (const key of keys) door.leave(key);
    return 'held';
  };

/** Aborts in a moment; lives no longer than its cycle. */
export const abortsSoon = (): AbortSignal => {
  const controller = new AbortController();
  setImmediate(() => setImmediate(() => controller.abort()));
  return controller.signal;
};

const endingOf = (error: unknown): Ending => {
  if (error instanceof LockAbortedError) return 'aborted';
  if (error instanceof LockNotAcquiredError) return 'timedOut';
  if (error instanceof LockLostError) return 'lost';
  throw error;
};

/** The kind of cycle whose turn it is: as many callers as there are hot keys come with one kind, then the next. */
export const runCycle = async (cycles: readonly Cycle[], caller: Caller): Promise<Ending> => {
  const kind = Math.floor(caller.n / HOT_KEYS) % cycles.length;
  try {
    return await cycles[kind]!(caller);
  } catch (error) {
    return endingOf(error);
  }
};
