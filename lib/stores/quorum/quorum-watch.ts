import type { Claim } from '../../core/seam/claim.js';
import type { Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { StoreFailure } from '../../core/seam/store-failure.js';
import { QuorumFailure } from './quorum-failure.js';
import type { QuorumHost } from './quorum-host.js';
import { kindAt, type QuorumNode } from './quorum-node.js';

/**
 * How long a hint of fewer than a majority is held back, in ms: the other nodes may be about to say the same, and callers of
 * whom each heard another node first would each get one node.
 */
const FEW_MIN_MS = 10;
const FEW_MAX_MS = 30;
/** For how long after a hint the nodes that say the same later are not heard, in ms. */
const LATE_MS = 30;

/** Hears at all nodes that a key may have become free, and says so once. */
export class QuorumWatch implements Watch {
  private readonly watches = new Map<QuorumNode, Watch>();
  private readonly heard = new Set<QuorumNode>();
  private readonly failures = new Map<QuorumNode, StoreFailure>();
  private timer: unknown;
  private late = new Set<QuorumNode>();
  private lateUntil = -Infinity;
  private wasLive = false;
  private isOpen = true;

  constructor(
    private readonly host: QuorumHost,
    claim: Claim,
    private readonly listener: WatchListener,
  ) {
    for (const node of host.nodes) {
      const watch = kindAt(node, claim.kind).watch(claim, {
        hint: () => this.hinted(node),
        failed: (failure) => this.failed(node, failure),
      });
      this.watches.set(node, watch);
    }
  }

  get live(): boolean {
    if (!this.isOpen) return false;
    let live = 0;
    for (const watch of this.watches.values()) if (watch.live) live += 1;
    return live >= this.host.majority;
  }

  close(): void {
    this.isOpen = false;
    this.host.runtime.clearTimer(this.timer);
    for (const watch of this.watches.values()) watch.close();
  }

  private hinted(node: QuorumNode): void {
    const { host, heard } = this;
    if (!this.isOpen) return;
    // What it missed before that, whoever waits has to look up.
    const becameLive = !this.wasLive && this.live;
    this.wasLive = this.live;
    // The others say the same when they are live.
    if (becameLive) return this.tell((at) => !this.watches.get(at)!.live);
    if (this.late.delete(node) && host.runtime.now() < this.lateUntil) return;
    heard.add(node);
    if (heard.size >= host.majority) return this.tell((at) => !heard.has(at));
    // Of what fewer have told the others may have nothing to say; what they say next is something else.
    this.timer ??= host.runtime.setTimer(
      () => this.tell(() => false),
      FEW_MIN_MS + host.random() * (FEW_MAX_MS - FEW_MIN_MS),
      true,
    );
  }

  /** @param isLate which nodes are about to say the same. */
  private tell(isLate: (node: QuorumNode) => boolean): void {
    const { host } = this;
    host.runtime.clearTimer(this.timer);
    this.timer = undefined;
    this.late = new Set(host.nodes.filter(isLate));
    this.lateUntil = host.runtime.now() + LATE_MS;
    this.heard.clear();
    this.listener.hint();
  }

  private failed(node: QuorumNode, failure: StoreFailure): void {
    const { host, failures } = this;
    if (!this.isOpen) return;
    failures.set(node, failure);
    // Told once: with one node less nothing can be heard of a majority.
    if (failures.size !== host.nodes.length - host.majority + 1) return;
    this.listener.failed(new QuorumFailure(failures, host, 'not-executed'));
  }
}
