import type { Runtime } from '../runtime.js';
import type { Claim } from '../seam/claim.js';
import type { ReleaseOptions } from '../seam/lock-store.js';
import type { Place } from '../seam/place.js';
import { StoreFailure } from '../seam/store-failure.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** A hold that is to be ended in the store. */
export interface Orphan {
  readonly claim: Claim;
  /** The failure that left its acquire unknown. */
  readonly doubt?: StoreFailure | undefined;
  /** When it has run out in any case. */
  readonly until: number;
  /** Until when it is to stay, in ms from now; see `Hold.keepForMs`. */
  readonly keepForMs?: (now: number) => number | undefined;
}

/**
 * Ends in the store what has no owner any more: holds whose acquire was never answered, whose grant came too late, or
 * whose release failed, and places in line. Asks again until the answer is certain, or the hold has ended by itself.
 */
export class Undo {
  private readonly running = new Set<Promise<void>>();
  private stopped = false;

  constructor(
    private readonly release: (claim: Claim, how: ReleaseOptions) => Promise<unknown>,
    private readonly runtime: Runtime,
  ) {}

  /** How much is being undone. */
  get size(): number {
    return this.running.size;
  }

  /** Releases a hold in the background. */
  begin({ claim, doubt, until, keepForMs }: Orphan): void {
    const ask = (): Promise<unknown> =>
      this.release(claim, { doubt, keepForMs: keepForMs?.(this.runtime.now()) });
    this.track(this.untilAnswered(ask, until));
  }

  /** Leaves a place in line in the background, and gives back what was granted to it. */
  leave(place: Place, doubt?: StoreFailure): void {
    this.track(this.untilAnswered(() => place.leave(doubt), Infinity));
  }

  /** Counts work that ends holds by other means among what is being undone. It must not reject. */
  track(work: Promise<unknown>): void {
    const tracked: Promise<void> = work.then(() => void this.running.delete(tracked));
    this.running.add(tracked);
  }

  /** Ends the retries. What is left in the store ends by its lease. */
  stop(): void {
    this.stopped = true;
  }

  /** Resolves when nothing is left to undo. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private async untilAnswered(ask: () => Promise<unknown>, until: number): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !this.stopped; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        await ask();
        return;
      } catch (error) {
        // What is no failure of the store is a bug in it, which would repeat itself.
        if (!(error instanceof StoreFailure)) return;
      }
      const leftMs = until - this.runtime.now();
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => this.runtime.setTimer(resolve, Math.min(pause, leftMs), true));
    }
  }
}
