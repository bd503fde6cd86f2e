import type { Orphan } from '../../../core/lease/undo.js';
import { mayLastMs, type Claim } from '../../../core/seam/claim.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../../core/seam/lock-store.js';
import { OthersFirst } from '../../../core/seam/others-first.js';
import type { AcquireReply, ExtendReply, ReleaseReply, Taken } from '../../../core/seam/reply.js';
import type { Grant } from '../../../core/seam/grant.js';
import { QuorumCall, SILENT_NODES_MS, type NodeReply, QuorumFailure } from './quorum-call.js';
import { commitTokens } from './commit-tokens.js';
import { asNode, doubtOf, granting, isGrant, isNotExecuted, type NodeGrant } from './node-grants.js';
import { type QuorumHolds } from './quorum-holds.js';
import type { QuorumHost } from './quorum-host.js';
import { kindAt } from './quorum-node.js';
import { QuorumRenewal } from './quorum-renewal.js';
import { QuorumWatch } from './quorum-watch.js';
import { reachedBy, withDrift, withoutDrift } from './validity.js';

/**
 * Range of the random pause before a retry when no caller got a majority, in ms: callers must not all retry at once.
 * The range doubles with each such retry, up to `SPLIT_DOUBLINGS` times, because it may not be a split vote. While a
 * node is down, a lock with a holder looks the same.
 */
const SPLIT_MIN_MS = 5;
const SPLIT_MAX_MS = 50;
const SPLIT_DOUBLINGS = 5;

/** Reply of a node that has nothing to release. */
const NOT_HELD: ReleaseReply = { wasHeld: false, othersWaiting: false };

/**
 * One kind of lock on several nodes. An owner holds a key once a majority of all nodes has granted it, and as long as a
 * majority still does. The algorithm is Redis's Redlock with two additions. The token of a grant is larger than all
 * earlier ones (see {@link commitTokens}), and restarted nodes do not count for a while.
 *
 * Nodes keep no wait queue: waiters listen for releases, and retry.
 */
export class QuorumKind<C extends Claim> implements KindStore<C> {
  readonly downgrade?: (claim: C) => Promise<ExtendReply>;
  private readonly othersFirst = new OthersFirst();
  private readonly renewal: QuorumRenewal<C>;

  constructor(
    private readonly host: QuorumHost,
    private readonly holds: QuorumHolds,
    canDowngrade: boolean,
  ) {
    this.renewal = new QuorumRenewal(host, holds);
    if (canDowngrade) this.downgrade = (claim) => this.host.run(() => this.renewal.downgrade(claim));
  }

  acquire(claim: C): Promise<AcquireReply> {
    return this.host.run(() => this.othersFirst.acquire(claim, () => this.acquireAtAll(claim)));
  }

  extendMany(claims: readonly C[]): Promise<readonly ExtendReply[]> {
    return this.host.run(() => this.renewal.extendMany(claims));
  }

  release(claim: C, how: ReleaseOptions = {}): Promise<ReleaseReply> {
    const { host } = this;
    if (how.continues) return host.run(() => this.cutAtAll(claim, how));
    const reply = host.run(() => this.releaseAtAll(claim, how));
    // An undo waits for every node, and no caller has to wait for that.
    return how.uncertain ? reply : this.othersFirst.release(claim.finalKey, reply, host.runtime);
  }

  watch(claim: C, listener: WatchListener): Watch {
    return new QuorumWatch(this.host, claim, listener);
  }

  private async acquireAtAll(claim: C): Promise<AcquireReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    host.noteLease(claim.leaseMs);
    // Once for all nodes: where they give the same token, each of them knows it, and none needs a commit.
    const leastToken = claim.tokens > 0 ? host.proposedToken() : undefined;
    const requested = asNode(claim, holds.nameOf(claim.owner), leastToken);
    const quorumCall = new QuorumCall<AcquireReply>(nodes, (node) => node.acquire(requested));
    holds.requested(claim, quorumCall);
    const most = nodes.length - majority;
    await quorumCall.until(
      (replies) => {
        const granted = replies.filter(isGrant).length;
        return granted >= majority || replies.length - granted > most;
      },
      { runtime: host.runtime, minMs: SILENT_NODES_MS },
    );
    const grants = granting(quorumCall);
    if (grants.length >= majority) return this.granted(claim, requested, quorumCall, grants);
    const { failures } = quorumCall;
    if (failures.size > most) {
      const nothing = grants.length === 0 && [...failures.values()].every(isNotExecuted);
      if (nothing) holds.forget(claim.owner);
      throw new QuorumFailure(failures, host, nothing ? 'not-executed' : 'unknown');
    }
    return this.refused(claim, requested, quorumCall);
  }

  /** Resolves an acquire that a majority granted. Without tokens there is no commit to wait for. */
  private granted(
    claim: C,
    requested: C,
    quorumCall: QuorumCall<AcquireReply>,
    grants: readonly NodeGrant[],
  ): AcquireReply | Promise<AcquireReply> {
    if (claim.tokens === 0) return this.grantOf(requested, grants);
    return commitTokens(this.host, requested, quorumCall).then((token) => {
      if (token === undefined) return this.refused(claim, requested, quorumCall);
      this.holds.committed(claim.owner, token + claim.tokens - 1);
      return this.grantOf(requested, granting(quorumCall), token);
    });
  }

  private grantOf({ owner, tokens }: C, grants: readonly NodeGrant[], token?: number): Grant {
    const { majority } = this.host;
    const leftMs = reachedBy(
      majority,
      grants.map(({ grant }) => grant.validForMs),
    );
    return {
      status: 'granted',
      validForMs: Math.max(0, withoutDrift(leftMs)),
      ...(token !== undefined && { token, tokens }),
      grantedBy: grants.map(({ node }) => node.name),
      owner,
    };
  }

  /** Resolves an acquire that too many nodes refused. Releases what the other nodes have granted. */
  private refused(claim: C, requested: C, quorumCall: QuorumCall<AcquireReply>): Taken {
    const { host, holds } = this;
    const { majority } = host;
    const replies = quorumCall.replies;
    const taken = replies.filter((reply): reply is Taken => reply.status === 'taken');
    const until = host.runtime.now() + mayLastMs(requested);
    const isSplit = taken.length < majority;
    const splits = isSplit ? holds.splitsOf(claim.owner) : 0;
    if (taken.length < host.nodes.length) holds.rename(claim, isSplit ? splits + 1 : 0);
    else holds.forget(claim.owner);
    quorumCall.onEach((nodeReply) => this.releaseAt(requested, nodeReply, until));
    // While other nodes fail, fewer blocking nodes are enough.
    const blocks = (some: readonly Taken[]): boolean =>
      some.length > 0 && (some.length > host.nodes.length - majority || some.length === taken.length);
    const others = taken.filter(({ heldAs }) => heldAs !== undefined);
    const heldAs = blocks(others) ? others[0]!.heldAs : undefined;
    const endless = blocks(taken.filter(({ endless }) => endless));
    const blocking = { ...(heldAs && { heldAs }), ...(endless && { endless }) };
    return { status: 'taken', retryInMs: this.retryInMs(taken, splits), ...blocking };
  }

  /** Returns when a majority of nodes may be free, in ms: after the shortest of the blocking holds. */
  private retryInMs(taken: readonly Taken[], splits: number): number {
    const { nodes, majority, runtime } = this.host;
    const rangeMs = SPLIT_MAX_MS * 2 ** Math.min(splits, SPLIT_DOUBLINGS);
    const splitMs = SPLIT_MIN_MS + runtime.random() * (rangeMs - SPLIT_MIN_MS);
    // Perhaps no owner has a majority: by then the others have released what they got.
    if (taken.length < majority) return splitMs;
    const soonest = taken.map(({ retryInMs }) => retryInMs).sort((a, b) => a - b);
    return Math.max(splitMs, soonest[taken.length - (nodes.length - majority) - 1]!);
  }

  private releaseAt(requested: C, nodeReply: NodeReply<AcquireReply>, until: number): void {
    const uncertain = doubtOf(nodeReply);
    const isGranted = nodeReply.status === 'answered' && isGrant(nodeReply.reply);
    if (uncertain || isGranted) nodeReply.node.undo.begin({ claim: requested, uncertain, until });
  }

  /** Shortens a hold that continues. Nodes that failed are not asked again: by then the hold may have been extended. */
  private async cutAtAll(claim: C, how: ReleaseOptions): Promise<ReleaseReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    const requested = asNode(claim, holds.nameOf(claim.owner));
    const keepForMs = withDrift(how.keepForMs ?? claim.leaseMs);
    host.noteLease(keepForMs);
    const quorumCall = new QuorumCall<ReleaseReply>(nodes, (node) =>
      node.request(() => kindAt(node, requested.kind).release(requested, { ...how, keepForMs })),
    );
    const most = nodes.length - majority;
    await quorumCall.until((replies) => {
      const were = replies.filter(({ wasHeld }) => wasHeld).length;
      return were >= majority || replies.length - were > most;
    });
    const { replies, failures } = quorumCall;
    const were = replies.filter(({ wasHeld }) => wasHeld).length;
    if (were < majority && replies.length - were <= most) throw new QuorumFailure(failures, host, 'unknown');
    const intruder = replies.some((reply) => reply.intruder);
    return { wasHeld: were >= majority, othersWaiting: false, ...(intruder && { intruder }) };
  }

  /**
   * Releases the hold at every node that may have it. A node that does not reply is asked again in the background: the
   * key is free once a majority has released it.
   */
  private async releaseAtAll(claim: C, how: ReleaseOptions): Promise<ReleaseReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    const requested = asNode(claim, holds.nameOf(claim.owner));
    const acquired = holds.of(claim.owner)?.quorumCall;
    holds.ending(claim.owner);
    const isFinal = how.uncertain !== undefined;
    if (isFinal) await acquired?.complete();
    const { keepForMs } = how;
    const until = host.runtime.now() + mayLastMs(requested);
    const orphan: Orphan = { claim: requested, until, keepForMs: () => keepForMs };
    if (keepForMs !== undefined) host.noteLease(keepForMs);
    const doubts = new Map(nodes.map((node) => [node, holds.doubtAt(claim.owner, node)]));
    const nodeReplied = new Set(acquired?.nodeReplies.map(({ node }) => node));
    const quorumCall = new QuorumCall<ReleaseReply>(nodes, (node) =>
      holds.isNowhereAt(claim.owner, node)
        ? Promise.resolve(NOT_HELD)
        : kindAt(node, requested.kind).release(requested, { uncertain: doubts.get(node), keepForMs }),
    );
    const most = nodes.length - majority;
    if (isFinal) await quorumCall.complete();
    await quorumCall.until((replies) => {
      const were = replies.filter(({ wasHeld }) => wasHeld).length;
      return were >= majority || replies.length - were > most;
    });
    const { replies, failures } = quorumCall;
    // Throw before forgetting the owner: a retry of this release needs what is known of it.
    if (failures.size > (isFinal ? 0 : most)) throw new QuorumFailure(failures, host, 'unknown');
    const were = replies.filter(({ wasHeld }) => wasHeld).length;
    if (were < majority && replies.length - were <= most) {
      throw new QuorumFailure(failures, host, 'unknown');
    }
    holds.forget(claim.owner);
    // Release once more at nodes whose reply to the acquire has come since then, and leaves it unknown. And at one that lacked
    // the script, got the acquire again in full, and executed it behind the release.
    acquired?.onEach((nodeReply) => {
      const { node } = nodeReply;
      if (nodeReplied.has(node)) return;
      const uncertain = doubtOf(nodeReply);
      const isGranted = nodeReply.status === 'answered' && isGrant(nodeReply.reply);
      const isOvertaken = isGranted && quorumCall.replyOf(node)?.wasHeld === false;
      if (uncertain || isOvertaken) node.undo.begin({ ...orphan, uncertain });
    });
    quorumCall.onEach((nodeReply) => {
      if (nodeReply.status === 'failed') {
        // The failure of the acquire comes first: an acquire still under way may arrive after this release.
        const uncertain = doubts.get(nodeReply.node) ?? nodeReply.failure;
        nodeReply.node.undo.begin({ ...orphan, uncertain });
      }
    });
    const intruder = replies.some((reply) => reply.intruder);
    return {
      wasHeld: were >= majority,
      othersWaiting: replies.some(({ othersWaiting }) => othersWaiting),
      ...(intruder && { intruder }),
    };
  }
}
