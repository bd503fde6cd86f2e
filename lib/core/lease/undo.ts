import type { Claim } from '../seam/claim.js';
import { StoreFailure, type LockStore } from '../seam/lock-store.js';
import type { Runtime } from '../runtime.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** For how long a hold is still to stay, in ms; undefined when it may go at once. */
export const keepForMsOf = (keepUntil: number, now: number): number | undefined =>
  keepUntil > now ? Math.ceil(keepUntil - now) : undefined;

/**
 * Sees to it that what nobody owns any more does not stay in the store: holds whose acquire was never answered,
 * and holds whose release failed. Asks again until the answer is certain, or the hold has ended by itself.
 */
export class Settler {
  private readonly running = new Set<Promise<void>>();
  private stopped = false;

  constructor(
    private readonly store: LockStore,
    private readonly runtime: Runtime,
  ) {}

  /** How many holds are being settled. */
  get size(): number {
    return this.running.size;
  }

  /**
   * Releases the claim in the background. `doubt` is the failure that left its acquire unknown; `until` is when
   * the hold has run out in any case; until `keepUntil` it is to stay.
   */
  settle(claim: Claim, doubt: StoreFailure | undefined, until: number, keepUntil = 0): void {
    const work = this.run(claim, doubt, until, keepUntil).finally(() => this.running.delete(work));
    this.running.add(work);
  }

  /** Counts work that ends holds by other means among what is being settled. It must not reject. */
  include(work: Promise<unknown>): void {
    const included: Promise<void> = work.then(() => void this.running.delete(included));
    this.running.add(included);
  }

  /** Ends the retries. What is left in the store ends by its lease. */
  stop(): void {
    this.stopped = true;
  }

  /** Resolves when nothing is left to settle. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private async run(
    claim: Claim,
    doubt: StoreFailure | undefined,
    until: number,
    keepUntil: number,
  ): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !this.stopped; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        const keepForMs = keepForMsOf(keepUntil, this.runtime.now());
        await this.store.release(claim, { doubt, keepForMs });
        return;
      } catch (error) {
        // Only a store failure is worth another try; anything else is a bug that would repeat itself.
        if (!(error instanceof StoreFailure)) return;
      }
      const leftMs = until - this.runtime.now();
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => this.runtime.setTimer(resolve, Math.min(pause, leftMs)));
    }
  }
}
