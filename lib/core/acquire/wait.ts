/** A caller that wants a key: until when, and how it may be called off. */
export interface Wait {
  /** The key as the caller wrote it. */
  readonly key: string;
  readonly startedAt: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Part of work that runs already; it may go on waiting while the app stops. */
  readonly nested: boolean;
}

export const deadlineOf = (wait: Wait): number => wait.startedAt + wait.waitMs;
