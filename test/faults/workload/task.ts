import type { Mode } from '../../checker/history.js';
import type { AFTERWARDS } from '../../checker/rules/afterwards.rule.js';

/** How a caller takes its lock. */
export type Style =
  | 'withLock'
  | 'acquire'
  | 'tryAcquire'
  /** `@Locked` methods of the Nest app: watched; with a fixed lease; skipped when taken; on two keys. */
  | 'locked'
  | 'locked, fixed'
  | 'locked, skip'
  | 'locked, two keys'
  /** The same locks, in the order in which callers came. */
  | FairStyle
  /** One of several permits of one key. */
  | PermitStyle
  /** When all is over. */
  | typeof AFTERWARDS;

export type FairStyle = 'withLock, fair' | 'acquire, fair' | 'tryAcquire, fair' | 'locked, fair';

export type PermitStyle = 'withPermit' | 'acquirePermit' | 'tryAcquirePermit';

/** The name of a key with so many permits. */
export const permitsKey = (limit: number): string => `permits-${limit}`;

/** How many permits a final key has; undefined for a lock. */
export const limitOf = (finalKey: string): number | undefined => {
  const limit = /:permits-(\d+)$/.exec(finalKey)?.[1];
  return limit === undefined ? undefined : Number(limit);
};

/** Every caller's key that is fair is the same one: there is an order only where many wait. */
export const FAIR_KEY = 'fair-1';

/** What happens while a lock is held. */
export type Step =
  /** Reads the register, waits, and writes it, with the fencing token of the key. */
  | { readonly do: 'write'; readonly key: string; readonly pauseMs: number }
  | { readonly do: 'pause'; readonly ms: number }
  | { readonly do: 'extend'; readonly ms: number }
  /** Makes a read lock of a write lock. */
  | { readonly do: 'downgrade' }
  /** Gives the lease back by hand, or once more. */
  | { readonly do: 'release' }
  /** Asks the lease whether it is valid. */
  | { readonly do: 'ask' }
  /** A section in the lease. */
  | { readonly do: 'run' }
  | { readonly do: 'forceUnlock'; readonly key: string }
  /** The event loop stands still. */
  | { readonly do: 'block'; readonly ms: number }
  /** All at once, or one after the other. */
  | { readonly do: 'beside'; readonly steps: readonly Step[] }
  | { readonly do: 'in-turn'; readonly steps: readonly Step[] }
  /** For schedules in which one thing has to come after another. */
  | { readonly do: 'notify'; readonly what: string }
  | { readonly do: 'wait'; readonly for: string }
  /** Several tasks are siblings: they start together. */
  | { readonly do: 'nest'; readonly tasks: readonly Task[] };

/** One caller's whole business, as plain data: it can be made from a seed, sent to a worker, and printed. */
export interface Task {
  readonly style: Style;
  /** Without the round and the prefix. */
  readonly keys: readonly string[];
  /** Of permits: what their caller says their number is; null leaves that to the store. */
  readonly permits?: number | null;
  /** How a read-write lock is taken; undefined for every other lock. */
  readonly mode?: Mode;
  /** Null waits without end. Decorated methods have their own. */
  readonly waitMs: number | null;
  /** Undefined: the watchdog. */
  readonly leaseMs?: number;
  readonly holdAtLeastMs?: number;
  /** The caller's signal aborts after this long. */
  readonly abortAfterMs?: number;
  readonly steps: readonly Step[];
  /** Of a nested task: it does not say which lock it is a part of. */
  readonly ordinary?: true;
  /** What the caller does with the lease when it is over. */
  readonly after?: readonly Step[];
}
