import type { Runtime } from '../util/runtime.js';
import type { Claim } from '../seam/claim.js';
import type { ReleaseOptions } from '../seam/lock-store.js';
import type { QueueEntry } from '../seam/queue-entry.js';
import { StoreFailure } from '../seam/store-failure.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** A hold to be ended in the store. */
export interface Orphan {
  readonly claim: Claim;
  /** Failure that left its acquire with an unknown outcome. */
  readonly uncertain?: StoreFailure | undefined;
  /** When the hold has expired in any case. */
  readonly until: number;
  /** Returns how long it still has to stay, in ms; see `Hold.keepForMs`. */
  readonly keepForMs?: (now: number) => number | undefined;
}

/**
 * Ends holds and queue entries without an owner in the store: acquires with an unknown outcome, grants that came too
 * late, and failed releases. Retries until the reply is certain, or the hold has expired.
 */
export class Undo {
  private readonly running = new Set<Promise<void>>();
  /** Timers of the pauses, and how to end each. */
  private readonly pauses = new Map<unknown, () => void>();
  private stopped = false;

  constructor(
    private readonly release: (claim: Claim, how: ReleaseOptions) => Promise<unknown>,
    private readonly runtime: Runtime,
  ) {}

  /** Number of pending releases. */
  get size(): number {
    return this.running.size;
  }

  /** Releases a hold in the background. */
  begin({ claim, uncertain, until, keepForMs }: Orphan): void {
    const request = (): Promise<unknown> =>
      this.release(claim, { uncertain, keepForMs: keepForMs?.(this.runtime.now()), until });
    this.track(this.untilReplied(request, until));
  }

  /** Removes a queue entry in the background, and releases what was granted to it. */
  leave(entry: QueueEntry, uncertain?: StoreFailure): void {
    this.track(this.untilReplied(() => entry.leave(uncertain), Infinity));
  }

  /** Counts other work that ends holds as a pending release. The work must not reject. */
  track(work: Promise<unknown>): void {
    const tracked: Promise<void> = work.then(() => void this.running.delete(tracked));
    this.running.add(tracked);
  }

  /** Stops the retries at once. Holds that are left in the store expire. */
  stop(): void {
    this.stopped = true;
    for (const [timer, end] of this.pauses) {
      this.runtime.clearTimer(timer);
      end();
    }
  }

  /** Resolves when no release is pending. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private async untilReplied(request: () => Promise<unknown>, until: number): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !this.stopped; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        await request();
        return;
      } catch (error) {
        // Any other error is a bug in the store, and would repeat itself.
        if (!(error instanceof StoreFailure)) return;
      }
      const leftMs = until - this.runtime.now();
      if (leftMs <= 0) return;
      await this.pause(Math.min(pause, leftMs));
    }
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.pauses.delete(timer);
        resolve();
      };
      const timer = this.runtime.setTimer(end, ms, true);
      this.pauses.set(timer, end);
    });
  }
}
