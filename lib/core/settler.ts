import type { Claim, ReleaseReply } from './claim.js';
import { StoreFailure, type LockStore } from './lock-store.js';
import type { Runtime } from './runtime.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

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
   * the hold has run out in any case.
   */
  settle(
    claim: Claim,
    doubt: StoreFailure | undefined,
    until: number,
    done?: (reply: ReleaseReply) => void,
  ): void {
    const work = this.run(claim, doubt, until, done).finally(() => this.running.delete(work));
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
    done: ((reply: ReleaseReply) => void) | undefined,
  ): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !this.stopped; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        const reply = await this.store.release(claim, doubt);
        done?.(reply);
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
