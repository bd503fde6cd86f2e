import type { Runtime } from '../../core/runtime.js';
import type { Claim } from '../../core/seam/claim.js';
import type { ReleaseOptions } from '../../core/seam/lock-store.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { kindAt, type QuorumNode } from './quorum-node.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** How many are given back at a time to a node that answers again. */
const AT_ONCE = 100;

/** What one node has, or may have, and nobody holds. */
interface Leftover {
  readonly claim: Claim;
  readonly how: ReleaseOptions;
  /** When it has ended in any case. */
  readonly until: number;
}

/**
 * What single nodes have, and nobody holds: of a caller that did not get a majority, or of a node that did not answer the
 * release. It is given back in the background, until the node says so for certain or it has ended by itself. A node that does
 * not answer is asked about one after the other, and about all once it does: there may be many.
 */
export class Leftovers {
  private readonly asking = new Set<Promise<unknown>>();
  /** What is to be given back to nodes that did not answer. */
  private readonly kept = new Map<QuorumNode, Leftover[]>();
  private readonly timers = new Map<unknown, () => void>();
  private count = 0;
  private closed = false;

  constructor(private readonly runtime: Runtime) {}

  /** How much is being given back. */
  get size(): number {
    return this.count;
  }

  /** @param until when it has ended in any case. */
  giveBack(node: QuorumNode, claim: Claim, how: ReleaseOptions, until: number): void {
    const leftover: Leftover = { claim, how, until };
    this.count += 1;
    // One of them finds out whether it still fails.
    if (node.failing) this.keep(node, leftover, 0);
    else void this.whileAsking(this.ask(node, leftover));
  }

  /** Ends the retries, and resolves when the requests that are under way have ended. */
  async close(): Promise<void> {
    this.closed = true;
    for (const [timer, wake] of this.timers) {
      this.runtime.clearTimer(timer);
      wake();
    }
    await Promise.all(this.asking);
  }

  private async whileAsking<T>(work: Promise<T>): Promise<T> {
    this.asking.add(work);
    const answer = await work;
    this.asking.delete(work);
    return answer;
  }

  /** Asks once; what the node does not answer is kept. Whether it has. */
  private async ask(node: QuorumNode, leftover: Leftover): Promise<boolean> {
    const { claim, how } = leftover;
    try {
      await kindAt(node, claim.kind).release(claim, how);
    } catch (error) {
      if (error instanceof StoreFailure) {
        this.keep(node, leftover);
        return false;
      }
    }
    this.count -= 1;
    return true;
  }

  private keep(node: QuorumNode, leftover: Leftover, pauseMs = FIRST_PAUSE_MS): void {
    const kept = this.kept.get(node);
    if (this.closed) this.count -= 1;
    else if (kept) kept.push(leftover);
    else {
      this.kept.set(node, [leftover]);
      void this.askAgain(node, pauseMs);
    }
  }

  private async askAgain(node: QuorumNode, afterMs: number): Promise<void> {
    const kept = this.kept.get(node)!;
    for (let pauseMs = afterMs; kept.length > 0;) {
      if (pauseMs > 0) await this.pause(pauseMs);
      const now = this.runtime.now();
      const due = kept.splice(0).filter(({ until }) => {
        const isDue = until > now && !this.closed;
        if (!isDue) this.count -= 1;
        return isDue;
      });
      const answers = await this.whileAsking(this.askOneThenAll(node, due));
      pauseMs = answers || pauseMs === 0 ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
    this.kept.delete(node);
  }

  /** Whether the node answers about one of them; then it was asked about all. */
  private async askOneThenAll(node: QuorumNode, [first, ...others]: readonly Leftover[]): Promise<boolean> {
    if (!first || (await this.ask(node, first))) {
      for (let from = 0; from < others.length; from += AT_ONCE) {
        await Promise.all(others.slice(from, from + AT_ONCE).map((one) => this.ask(node, one)));
      }
      return true;
    }
    for (const one of others) this.keep(node, one);
    return false;
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
