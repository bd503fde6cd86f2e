import type { LockEventHub, LockLogger } from '../report/lock-events.js';
import type { Runtime } from '../util/runtime.js';
import type { Outages } from '../outage/outages.js';
import { StoreFailure, textWithCause } from '../seam/store-failure.js';

/**
 * Limits for a store that works only in part, because one of its servers or some requests fail. It fails within
 * `QUIET_MS` (in ms) after it worked, `SOON_AGAIN` times in a row. It then counts as working again after as long
 * without a failure.
 */
const QUIET_MS = 10_000;
const SOON_AGAIN = 2;

/** Tracks whether the store works, and reports each outage once: with one event and one log line. */
export class StoreHealth {
  private downSince: number | undefined;
  private upSince = -Infinity;
  private failedAt = -Infinity;
  /** Number of outages in a row that began soon after the one before. */
  private soonAgain = 0;
  private stopped = false;

  constructor(
    private readonly runtime: Runtime,
    private readonly events: LockEventHub,
    private readonly logger: LockLogger,
    /** Keys for which the store fails, although it may work for others. */
    private readonly outages: Pick<Outages, 'size' | 'storeFails'>,
  ) {}

  works(): void {
    if (this.downSince === undefined || this.outages.size > 0) return;
    const now = this.runtime.now();
    if (this.soonAgain >= SOON_AGAIN && now - this.failedAt < QUIET_MS) return;
    const downMs = Math.round(now - this.downSince);
    this.downSince = undefined;
    this.outages.storeFails = false;
    this.upSince = now;
    this.logger.log(`The lock store works again, after ${downMs} ms.`);
    this.events.emit('store-up', () => ({ downMs }));
  }

  /** Stops reporting: the store is being closed on purpose. */
  stop(): void {
    this.stopped = true;
  }

  failed(cause: unknown): void {
    if (this.stopped) return;
    if (cause instanceof StoreFailure && (cause.transient || cause.keyOnly || cause.overloaded)) return;
    const now = this.runtime.now();
    this.failedAt = now;
    if (this.downSince !== undefined) return;
    this.soonAgain = now - this.upSince < QUIET_MS ? this.soonAgain + 1 : 0;
    this.downSince = now;
    this.outages.storeFails = true;
    this.logger.warn(
      `The lock store does not work: ${textWithCause(cause)}. Locks cannot be taken until it does.`,
    );
    this.events.emit('store-down', () => ({ cause }));
  }
}
