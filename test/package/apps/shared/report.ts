/** What an app found out, printed as its last line and judged by the test that started it. */
export interface Report {
  /** The build of the library that ran. */
  readonly build: string;
  /** The tokens of orders of one user that were placed at the same time, in the order in which they were done. */
  readonly tokens: readonly number[];
  readonly mostInside: number;
  /** The hold as the server has it while the lock is held. */
  readonly heldInRedis: { readonly fields: number; readonly ttlMs: number };
  /** The answers of a locked handler: with the lock free, and while somebody else has it. */
  readonly served: Answer;
  readonly refused: Answer;
  /** Names of holds in Redis after all was released. */
  readonly leftInRedis: readonly string[];
  /** What a caller heard that waited when the app was closed. */
  readonly heardAtClose: string;
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: { readonly token?: number; readonly code?: string };
}
