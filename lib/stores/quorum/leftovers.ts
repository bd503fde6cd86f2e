import type { Runtime } from '../../core/runtime.js';
import type { Claim } from '../../core/seam/claim.js';
import type { ReleaseOptions } from '../../core/seam/lock-store.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { kindAt, type QuorumNode } from './quorum-node.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/**
 * What single nodes have, and nobody holds: of a caller that did not get a majority, or of a node that did not answer the
 * release. It is given back in the background, until the node says so for certain or it has ended by itself.
 */
export class Leftovers {
  private readonly running = new Set<Promise<void>>();
  private readonly timers = new Map<unknown, () => void>();
  private closed = false;

  constructor(private readonly runtime: Runtime) {}

  /** How much is being given back. */
  get size(): number {
    return this.running.size;
  }

  /** @param until when it has ended in any case. */
  giveBack(node: QuorumNode, claim: Claim, how: ReleaseOptions, until: number): void {
    const work: Promise<void> = this.untilAnswered(node, claim, how, until).then(() => {
      this.running.delete(work);
    });
    this.running.add(work);
  }

  /** Ends the retries, and resolves when the requests that are under way have ended. */
  async close(): Promise<void> {
    this.closed = true;
    for (const [timer, wake] of this.timers) {
      this.runtime.clearTimer(timer);
      wake();
    }
    await Promise.all(this.running);
  }

  private async untilAnswered(
    node: QuorumNode,
    claim: Claim,
    how: ReleaseOptions,
    until: number,
  ): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        await kindAt(node, claim.kind).release(claim, how);
        return;
      } catch (error) {
        if (!(error instanceof StoreFailure)) return;
      }
      const leftMs = until - this.runtime.now();
      if (leftMs <= 0 || this.closed) return;
      await this.pause(Math.min(pause, leftMs));
    }
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.timers.delete(timer);
        resolve();
      };
      const timer = this.runtime.setTimer(wake, ms, true);
      this.timers.set(timer, wake);
    });
  }
}
