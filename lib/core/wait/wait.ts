import type { LockKind } from '../kinds/kinds.js';
import type { HoldCaller } from '../lease/hold.js';

/** A caller that waits at a key, and the limits of its wait. */
export interface TimedWait {
  /** Key as the caller wrote it. */
  readonly key: string;
  readonly startedAt: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Whether it belongs to work that is running already; such a call may go on waiting while the app stops. */
  readonly nested: boolean;
}

/** A caller that wants a lock or a permit. */
export interface Wait extends TimedWait, HoldCaller {
  readonly kind: LockKind;
  /** Whether the event `waiting` was emitted; see `SlowWaits`. */
  isSlow?: boolean;
}

export const deadlineOf = (wait: Pick<TimedWait, 'startedAt' | 'waitMs'>): number =>
  wait.startedAt + wait.waitMs;

/** An acquire may be sent for so long, in ms, also when its caller waits for less: a short moment is no overload. */
export const MIN_UNSENT_MS = 200;

/** Until when a request that is to be sent from `from` on may be sent. */
export const sendableUntil = (wait: Pick<TimedWait, 'startedAt' | 'waitMs'>, from: number): number =>
  Math.max(deadlineOf(wait), from + MIN_UNSENT_MS);
