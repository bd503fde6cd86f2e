import type { Claim } from '../../../core/seam/claim.js';
import type { Watch, WatchListener } from '../../../core/seam/lock-store.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import { QuorumFailure } from './quorum-call.js';
import type { QuorumHost } from './quorum-host.js';
import { kindAt, type QuorumNode } from './quorum-node.js';

/**
 * Delay of a wake-up from fewer nodes than a majority, in ms: the other nodes may be about to report the same. Callers
 * that each heard another node first would otherwise get one node each.
 */
const FEW_MIN_MS = 10;
const FEW_MAX_MS = 30;
/** Time after a wake-up in which a late report of the same by another node is ignored, in ms. */
const LATE_MS = 30;

/** Listens at all nodes for a key that may have become free, and reports it once. */
export class QuorumWatch implements Watch {
  private readonly watches = new Map<QuorumNode, Watch>();
  private readonly notifiedBy = new Set<QuorumNode>();
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
        notified: () => this.nodeWoke(node),
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

  private nodeWoke(node: QuorumNode): void {
    const { host, notifiedBy } = this;
    if (!this.isOpen) return;
    // Waiters have to look for notifications that came before the watch was live.
    const becameLive = !this.wasLive && this.live;
    this.wasLive = this.live;
    // The others report the same when they become live.
    if (becameLive) return this.notify((at) => !this.watches.get(at)!.live);
    if (this.late.delete(node) && host.runtime.now() < this.lateUntil) return;
    notifiedBy.add(node);
    if (notifiedBy.size >= host.majority) return this.notify((at) => !notifiedBy.has(at));
    // The other nodes may have nothing to report: their next notification is a new one.
    this.timer ??= host.runtime.setTimer(
      () => this.notify(() => false),
      FEW_MIN_MS + host.runtime.random() * (FEW_MAX_MS - FEW_MIN_MS),
      true,
    );
  }

  /**  @param isLate returns whether a node is about to report the same */
  private notify(isLate: (node: QuorumNode) => boolean): void {
    const { host } = this;
    host.runtime.clearTimer(this.timer);
    this.timer = undefined;
    this.late = new Set(host.nodes.filter(isLate));
    this.lateUntil = host.runtime.now() + LATE_MS;
    this.notifiedBy.clear();
    this.listener.notified();
  }

  private failed(node: QuorumNode, failure: StoreFailure): void {
    const { host, failures } = this;
    if (!this.isOpen) return;
    failures.set(node, failure);
    // Report once: with this many failed nodes no majority can be heard any more.
    if (failures.size !== host.nodes.length - host.majority + 1) return;
    this.listener.failed(new QuorumFailure(failures, host, 'not-executed'));
  }
}
