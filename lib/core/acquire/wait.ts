/** A caller that wants a key, and the limits of its wait. */
export interface Wait {
  /** Key as the caller wrote it. */
  readonly key: string;
  readonly startedAt: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Whether it belongs to work that is running already; such a call may go on waiting while the app stops. */
  readonly nested: boolean;
  /** Whether the event `waiting` was emitted; see `SlowWaits`. */
  isSlow?: boolean;
}

export const deadlineOf = (wait: Wait): number => wait.startedAt + wait.waitMs;
