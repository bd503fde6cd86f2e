import type { StoreFailure } from './store-failure.js';

/** Active subscription to wake-ups; see {@link KindStore.watch}. */
export interface Watch {
  /** Whether notifications arrive now. While false, the waiter has to check by itself from time to time. */
  readonly live: boolean;
  /** Pause in ms until a polled store is asked about the key again. Default: as its `PollTraits` say. */
  readonly pauseMs?: number | undefined;
  close(): void;
}

/** Listener of a subscription to wake-ups. */
export interface WatchListener {
  /** Called when the key may have become free. May be spurious. */
  notified(): void;
  /** Called when the key may be free after this time in ms. A polled store is asked then. */
  freeIn?(ms: number): void;
  /** Called when this subscription can never become live, for example because a permission is missing. */
  failed(cause: StoreFailure): void;
}
