import { CompactingMap } from '../../core/compacting.js';
import { mayLastMs, type Claim } from '../../core/seam/claim.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply, Taken } from '../../core/seam/reply.js';
import type { Grant } from '../../core/seam/grant.js';
import { Ballot, PATIENCE_MS, type Vote } from './ballot.js';
import { commitTokens } from './commit-tokens.js';
import { asNode, doubtOf, granting, isGrant, isNotExecuted, type NodeGrant } from './node-grants.js';
import { QuorumFailure } from './quorum-failure.js';
import { type QuorumHolds } from './quorum-holds.js';
import type { QuorumHost } from './quorum-host.js';
import { kindAt } from './quorum-node.js';
import { QuorumRenewal } from './quorum-renewal.js';
import { QuorumWatch } from './quorum-watch.js';
import { reachedBy, withDrift, withoutDrift } from './validity.js';

/**
 * Callers of whom nobody got a majority try again after a time in this range, in ms: not all at once. From one time to the next
 * the range doubles, so often at most: where a node of the majority is gone, a holder looks the same for as long as it holds.
 */
const SPLIT_MIN_MS = 5;
const SPLIT_MAX_MS = 50;
const SPLIT_DOUBLINGS = 5;

/**
 * For how long after a release this process leaves the key to those who were told of it, in ms, counted from the answer: by
 * then their questions are on their way.
 */
const OTHERS_FIRST_MS = 3;

/** What a node says that has nothing to release. */
const NOT_HELD: ReleaseReply = { wasHeld: false, othersWaiting: false };

/**
 * One kind of lock on several nodes: held is what a majority of all nodes has granted to one owner, and as long as a majority
 * grants it still. After Redis's description of Redlock, with two things that it lacks: the token of a grant is larger than all
 * that were given before (see {@link commitTokens}), and nodes that have restarted do not count for a while.
 *
 * Nodes keep no line: who waits hears of releases, and tries again.
 */
export class QuorumKind<C extends Claim> implements KindStore<C> {
  readonly downgrade?: (claim: C) => Promise<ExtendReply>;
  /** Keys that this process has just given back, until others have had their chance. */
  private readonly givenBack = new CompactingMap<string, Promise<void>>();

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
    // A request right behind the own release would always be the first.
    const othersFirst = claim.waits ? this.givenBack.get(claim.finalKey) : undefined;
    return this.host.run(() =>
      othersFirst ? othersFirst.then(() => this.acquireAtAll(claim)) : this.acquireAtAll(claim),
    );
  }

  extendMany(claims: readonly C[]): Promise<readonly ExtendReply[]> {
    return this.host.run(() => this.renewal.extendMany(claims));
  }

  release(claim: C, how: ReleaseOptions = {}): Promise<ReleaseReply> {
    const { host, givenBack } = this;
    const { finalKey } = claim;
    if (how.continues) return host.run(() => this.cutAtAll(claim, how));
    const answer = host.run(() => this.releaseAtAll(claim, how));
    // An undo waits for every node, and nobody is to wait for that.
    if (how.doubt) return answer;
    const othersFirst = answer
      .then(
        ({ othersWaiting }) => (othersWaiting ? host.pause(OTHERS_FIRST_MS) : undefined),
        () => undefined,
      )
      .then(() => {
        if (givenBack.get(finalKey) === othersFirst) givenBack.delete(finalKey);
      });
    givenBack.set(finalKey, othersFirst);
    return answer;
  }

  watch(claim: C, listener: WatchListener): Watch {
    return new QuorumWatch(this.host, claim, listener);
  }

  private async acquireAtAll(claim: C): Promise<AcquireReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    host.asksFor(claim.leaseMs);
    const asked = asNode(claim, holds.nameOf(claim.owner));
    const ballot = new Ballot<AcquireReply>(nodes, (node) => node.acquire(asked));
    holds.asked(claim, ballot);
    const most = nodes.length - majority;
    await ballot.until(
      (replies) => {
        const granted = replies.filter(isGrant).length;
        return granted >= majority || replies.length - granted > most;
      },
      { runtime: host.runtime, leastMs: PATIENCE_MS },
    );
    const grants = granting(ballot);
    if (grants.length >= majority) return this.granted(claim, asked, ballot, grants);
    const { failures } = ballot;
    if (failures.size > most) {
      const nothing = grants.length === 0 && [...failures.values()].every(isNotExecuted);
      if (nothing) holds.forget(claim.owner);
      throw new QuorumFailure(failures, host, nothing ? 'not-executed' : 'unknown');
    }
    return this.refused(claim, asked, ballot);
  }

  /** Without tokens there is nothing to wait for. */
  private granted(
    claim: C,
    asked: C,
    ballot: Ballot<AcquireReply>,
    grants: readonly NodeGrant[],
  ): AcquireReply | Promise<AcquireReply> {
    if (claim.tokens === 0) return this.grantOf(asked, grants, undefined);
    return commitTokens(this.host, asked, ballot).then((token) => {
      if (token === undefined) return this.refused(claim, asked, ballot);
      this.holds.committed(claim.owner, token + claim.tokens - 1);
      return this.grantOf(asked, granting(ballot), token);
    });
  }

  private grantOf({ owner }: C, grants: readonly NodeGrant[], token: number | undefined): Grant {
    const { majority } = this.host;
    const leftMs = reachedBy(
      majority,
      grants.map(({ grant }) => grant.validForMs),
    );
    return {
      status: 'granted',
      validForMs: Math.max(0, withoutDrift(leftMs)),
      ...(token !== undefined && { token }),
      grantedBy: grants.map(({ node }) => node.name),
      owner,
    };
  }

  /** Too many nodes are somebody else's. What the others have granted is given back. */
  private refused(claim: C, asked: C, ballot: Ballot<AcquireReply>): Taken {
    const { host, holds } = this;
    const { majority } = host;
    const replies = ballot.answers;
    const taken = replies.filter((reply): reply is Taken => reply.status === 'taken');
    const until = host.runtime.now() + mayLastMs(asked);
    const isSplit = taken.length < majority;
    const splits = isSplit ? holds.splitsOf(claim.owner) : 0;
    if (taken.length < host.nodes.length) holds.rename(claim, isSplit ? splits + 1 : 0);
    else holds.forget(claim.owner);
    ballot.onEach((vote) => this.giveBack(asked, vote, until));
    const others = taken.filter(({ heldAs }) => heldAs !== undefined);
    const heldAs = others.length > host.nodes.length - majority ? others[0]!.heldAs : undefined;
    return { status: 'taken', retryInMs: this.retryInMs(taken, splits), ...(heldAs && { heldAs }) };
  }

  /** When a majority of nodes may be free: after the shortest of the holds in the way. */
  private retryInMs(taken: readonly Taken[], splits: number): number {
    const { nodes, majority } = this.host;
    const rangeMs = SPLIT_MAX_MS * 2 ** Math.min(splits, SPLIT_DOUBLINGS);
    const splitMs = SPLIT_MIN_MS + this.host.random() * (rangeMs - SPLIT_MIN_MS);
    // Nobody may have a majority: the others have given back what they got by then.
    if (taken.length < majority) return splitMs;
    const soonest = taken.map(({ retryInMs }) => retryInMs).sort((a, b) => a - b);
    return Math.max(splitMs, soonest[taken.length - (nodes.length - majority) - 1]!);
  }

  private giveBack(asked: C, vote: Vote<AcquireReply>, until: number): void {
    const { host } = this;
    if (vote.status === 'answered') {
      if (isGrant(vote.answer)) host.leftovers.giveBack(vote.node, asked, {}, until);
    } else {
      const doubt = doubtOf(vote);
      if (doubt) host.leftovers.giveBack(vote.node, asked, { doubt }, until);
    }
  }

  /** Cuts a hold that goes on. Nodes that failed are not asked again: by then it may have been lengthened. */
  private async cutAtAll(claim: C, how: ReleaseOptions): Promise<ReleaseReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    const asked = asNode(claim, holds.nameOf(claim.owner));
    const keepForMs = withDrift(how.keepForMs ?? claim.leaseMs);
    host.asksFor(keepForMs);
    const ballot = new Ballot<ReleaseReply>(nodes, (node) =>
      node.ask(() => kindAt(node, asked.kind).release(asked, { ...how, keepForMs })),
    );
    const most = nodes.length - majority;
    await ballot.until((replies) => {
      const were = replies.filter(({ wasHeld }) => wasHeld).length;
      return were >= majority || replies.length - were > most;
    });
    const { answers, failures } = ballot;
    const were = answers.filter(({ wasHeld }) => wasHeld).length;
    if (were < majority && answers.length - were <= most) throw new QuorumFailure(failures, host, 'unknown');
    const entered = answers.some((reply) => reply.entered);
    return { wasHeld: were >= majority, othersWaiting: false, ...(entered && { entered }) };
  }

  /**
   * Every node that may have it is asked. Where one does not answer it is asked again in the background: the key is free when
   * a majority has given it back.
   */
  private async releaseAtAll(claim: C, how: ReleaseOptions): Promise<ReleaseReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    const asked = asNode(claim, holds.nameOf(claim.owner));
    const acquired = holds.of(claim.owner)?.ballot;
    holds.ending(claim.owner);
    const isFinal = how.doubt !== undefined;
    if (isFinal) await acquired?.complete();
    const until = host.runtime.now() + mayLastMs(asked);
    const { keepForMs } = how;
    if (keepForMs !== undefined) host.asksFor(keepForMs);
    const doubts = new Map(nodes.map((node) => [node, holds.doubtAt(claim.owner, node)]));
    const voted = new Set(acquired?.votes.map(({ node }) => node));
    const ballot = new Ballot<ReleaseReply>(nodes, (node) =>
      holds.isNowhereAt(claim.owner, node)
        ? Promise.resolve(NOT_HELD)
        : kindAt(node, asked.kind).release(asked, { doubt: doubts.get(node), keepForMs }),
    );
    const most = nodes.length - majority;
    if (isFinal) await ballot.complete();
    await ballot.until((replies) => {
      const were = replies.filter(({ wasHeld }) => wasHeld).length;
      return were >= majority || replies.length - were > most;
    });
    const { answers, failures } = ballot;
    // Who asks again has to find what it was told of.
    if (failures.size > (isFinal ? 0 : most)) throw new QuorumFailure(failures, host, 'unknown');
    const were = answers.filter(({ wasHeld }) => wasHeld).length;
    if (were < majority && answers.length - were <= most) {
      throw new QuorumFailure(failures, host, 'unknown');
    }
    holds.forget(claim.owner);
    // A node whose answer to the acquire came since it was asked to release, and leaves it unknown, is asked once more.
    acquired?.onEach((vote) => {
      const doubt = voted.has(vote.node) ? undefined : doubtOf(vote);
      if (doubt) host.leftovers.giveBack(vote.node, asked, { doubt, keepForMs }, until);
    });
    ballot.onEach((vote) => {
      if (vote.status === 'failed') {
        // What an acquire may still have on its way outlives a release.
        const doubt = doubts.get(vote.node) ?? vote.failure;
        host.leftovers.giveBack(vote.node, asked, { doubt, keepForMs }, until);
      }
    });
    const entered = answers.some((reply) => reply.entered);
    return {
      wasHeld: were >= majority,
      othersWaiting: answers.some(({ othersWaiting }) => othersWaiting),
      ...(entered && { entered }),
    };
  }
}
