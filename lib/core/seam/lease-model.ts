/** What ends a hold in the store when its process does not release it. */
export type LeaseModel =
  /** Each hold has a time to live of its own, which outlives the process. */
  | { readonly type: 'expiring' }
  /**
   * All holds of a process end with its session, some time after the process has gone. The core ends fixed leases by a
   * release. `timeoutMs` is what the server has granted.
   */
  | { readonly type: 'session'; readonly timeoutMs: number };

/** The lease model of most stores. */
export const EXPIRING: LeaseModel = { type: 'expiring' };

/** A session of a store. All holds that were granted in it share this object. */
export interface Session {
  /** Until when the server certainly keeps the session, on the runtime's clock. Each reply of the server moves it. */
  readonly validUntil: number;
  /** Aborts when the session has ended for certain: nothing of it is left in the store. */
  readonly over: AbortSignal;
}
