import type { Runtime } from '../../core/runtime.js';
import type { Claim } from '../../core/seam/claim.js';
import type { ReleaseOptions } from '../../core/seam/lock-store.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { kindAt, type QuorumNode } from './quorum-node.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** Maximum number of concurrent releases at a node that replies again. */
const AT_ONCE = 100;

/** A hold that one node has, or may have, without an owner that wants it. */
interface PendingRelease {
  readonly claim: Claim;
  readonly how: ReleaseOptions;
  /** Time at which it has ended in any case. */
  readonly until: number;
}

/**
 * Pending releases: holds on single nodes that no owner wants. They belong to callers that got no majority, or to nodes
 * that did not reply to a release. Each is released in the background, until the node confirms it or the hold has
 * expired. A node that does not reply gets one release at a time, and all once it replies: there may be many.
 */
export class PendingReleases {
  private readonly requesting = new Set<Promise<unknown>>();
  /** Releases for nodes that did not reply. */
  private readonly kept = new Map<QuorumNode, PendingRelease[]>();
  private readonly timers = new Map<unknown, () => void>();
  private count = 0;
  private closed = false;

  constructor(private readonly runtime: Runtime) {}

  /** Number of pending releases. */
  get size(): number {
    return this.count;
  }

  /**  @param until time at which the hold has ended in any case */
  add(node: QuorumNode, claim: Claim, how: ReleaseOptions, until: number): void {
    const pendingRelease: PendingRelease = { claim, how, until };
    this.count += 1;
    // One release finds out whether the node still fails.
    if (node.failing) this.keep(node, pendingRelease, 0);
    else void this.whileRequesting(this.request(node, pendingRelease));
  }

  /** Ends the retries, and resolves when the requests under way have ended. */
  async close(): Promise<void> {
    this.closed = true;
    for (const [timer, wake] of this.timers) {
      this.runtime.clearTimer(timer);
      wake();
    }
    await Promise.all(this.requesting);
  }

  private async whileRequesting<T>(work: Promise<T>): Promise<T> {
    this.requesting.add(work);
    const reply = await work;
    this.requesting.delete(work);
    return reply;
  }

  /** Sends one release, and keeps it when the node does not reply. Resolves with whether it replied. */
  private async request(node: QuorumNode, pendingRelease: PendingRelease): Promise<boolean> {
    const { claim, how } = pendingRelease;
    try {
      await kindAt(node, claim.kind).release(claim, how);
    } catch (error) {
      if (error instanceof StoreFailure) {
        this.keep(node, pendingRelease);
        return false;
      }
    }
    this.count -= 1;
    return true;
  }

  private keep(node: QuorumNode, pendingRelease: PendingRelease, pauseMs = FIRST_PAUSE_MS): void {
    const kept = this.kept.get(node);
    if (this.closed) this.count -= 1;
    else if (kept) kept.push(pendingRelease);
    else {
      this.kept.set(node, [pendingRelease]);
      void this.requestAgain(node, pauseMs);
    }
  }

  private async requestAgain(node: QuorumNode, afterMs: number): Promise<void> {
    const kept = this.kept.get(node)!;
    for (let pauseMs = afterMs; kept.length > 0;) {
      if (pauseMs > 0) await this.pause(pauseMs);
      const now = this.runtime.now();
      const due = kept.splice(0).filter(({ until }) => {
        const isDue = until > now && !this.closed;
        if (!isDue) this.count -= 1;
        return isDue;
      });
      const replies = await this.whileRequesting(this.requestOneThenAll(node, due));
      pauseMs = replies || pauseMs === 0 ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
    this.kept.delete(node);
  }

  /** Sends the first release, and the others once the node has replied to it. Resolves with whether it replied. */
  private async requestOneThenAll(
    node: QuorumNode,
    [first, ...others]: readonly PendingRelease[],
  ): Promise<boolean> {
    if (!first || (await this.request(node, first))) {
      for (let from = 0; from < others.length; from += AT_ONCE) {
        await Promise.all(others.slice(from, from + AT_ONCE).map((one) => this.request(node, one)));
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
