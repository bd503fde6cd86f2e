import type { StoreFailure } from './store-failure.js';

/** A running wake-up subscription; see {@link KindStore.watch}. */
export interface Watch {
  /** Whether hints are flowing right now. While false, the waiter must look by itself from time to time. */
  readonly live: boolean;
  close(): void;
}

/** What a wake-up subscription tells. */
export interface WatchListener {
  /** The key may have become free. May be spurious. */
  hint(): void;
  /** This subscription can never become live (a missing permission). */
  failed(cause: StoreFailure): void;
}
