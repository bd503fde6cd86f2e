import { CompactingMap } from '../../core/compacting.js';
import { mayLastMs, type Claim } from '../../core/seam/claim.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply, Taken } from '../../core/seam/reply.js';
import type { Grant } from '../../core/seam/grant.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { Ballot, PATIENCE_MS, type Vote } from './ballot.js';
import { commitTokens } from './commit-tokens.js';
import { doubtOf, granting, isGrant, isNotExecuted, type NodeGrant } from './node-grants.js';
import { QuorumFailure } from './quorum-failure.js';
import { type QuorumHolds } from './quorum-holds.js';
import type { QuorumHost } from './quorum-host.js';
import { kindAt, type QuorumNode } from './quorum-node.js';
import { QuorumWatch } from './quorum-watch.js';

/** How much a clock of a node may run ahead: a hundredth of the lease, and 2 ms for what is counted in whole ones. */
const DRIFT_PART = 0.01;
const DRIFT_MS = 2;

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

/** What is left of a lease that every node counts by a clock of its own. */
const withoutDrift = (ms: number): number => Math.floor(ms * (1 - DRIFT_PART)) - DRIFT_MS;

/** What at least so many have: the largest number that so many of these reach. */
const reachedBy = (count: number, numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => b - a)[count - 1]!;

/** What a node says that has nothing to release. */
const NOT_HELD: ReleaseReply = { wasHeld: false, othersWaiting: false };

type Extending = readonly ExtendReply[];

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

  constructor(
    private readonly host: QuorumHost,
    private readonly holds: QuorumHolds,
    canDowngrade: boolean,
  ) {
    if (canDowngrade) this.downgrade = (claim) => this.host.run(() => this.downgradeAll(claim));
  }

  acquire(claim: C): Promise<AcquireReply> {
    // A request right behind the own release would always be the first.
    const othersFirst = claim.waits ? this.givenBack.get(claim.finalKey) : undefined;
    return this.host.run(() =>
      othersFirst ? othersFirst.then(() => this.acquireAtAll(claim)) : this.acquireAtAll(claim),
    );
  }

  extendMany(claims: readonly C[]): Promise<readonly ExtendReply[]> {
    return this.host.run(() => this.extendAtAll(claims));
  }

  release(claim: C, how: ReleaseOptions = {}): Promise<ReleaseReply> {
    const { host, givenBack } = this;
    const { finalKey } = claim;
    const answer = host.run(() => this.releaseAtAll(claim, how));
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

  /** What a node is asked. It has no line: who waits, waits for all of them. */
  private asNode(claim: C, owner: string): C {
    return { ...claim, owner, waits: false, place: undefined, unlined: true };
  }

  private async acquireAtAll(claim: C): Promise<AcquireReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    host.asksFor(claim.leaseMs);
    const asked = this.asNode(claim, holds.nameOf(claim.owner));
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
    if (claim.tokens === 0) return this.grantOf(grants, undefined);
    return commitTokens(this.host, asked, grants).then((token) => {
      if (token === undefined) return this.refused(claim, asked, ballot);
      this.holds.committed(claim.owner, token + claim.tokens - 1);
      return this.grantOf(grants, token);
    });
  }

  private grantOf(grants: readonly NodeGrant[], token: number | undefined): Grant {
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

  private async extendAtAll(claims: readonly C[]): Promise<readonly ExtendReply[]> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    if (claims.length === 0) return [];
    const asked = claims.map((claim) => {
      host.asksFor(claim.leaseMs);
      return { ...claim, owner: holds.nameOf(claim.owner) };
    });
    const kind = claims[0]!.kind;
    const ballot = new Ballot<Extending>(nodes, (node) =>
      node.ask(() => kindAt(node, kind).extendMany(asked)),
    );
    const most = nodes.length - majority;
    await ballot.until((answers) =>
      claims.every((_, i) => {
        const held = answers.filter((replies) => replies[i]!.status === 'held').length;
        const lost = answers.filter((replies) => replies[i]!.status === 'lost').length;
        return held >= majority || lost > most;
      }),
    );
    if (ballot.failures.size > most) throw new QuorumFailure(ballot.failures, host, 'unknown');
    const replies = claims.map((claim, i) => this.extended(claim, i, ballot));
    ballot.onEach((vote) => {
      if (vote.status !== 'answered') return;
      claims.forEach((claim, i) => {
        if (replies[i]!.status === 'held' && vote.answer[i]!.status === 'lost')
          this.takeAgain(vote.node, claim);
      });
    });
    return replies;
  }

  /**
   * A node that has not what a majority holds was away, or has forgotten: it gets it again, and the token, so that the hold
   * outlives the next node that goes.
   */
  private takeAgain(node: QuorumNode, claim: C): void {
    const { holds, host } = this;
    const standing = holds.of(claim.owner);
    if (!standing || standing.isEnding) return;
    const asked: C = { ...this.asNode(claim, standing.name), tokens: 0 };
    const kind = kindAt(node, claim.kind);
    const { token } = standing;
    const isOver = (): boolean => {
      const now = holds.of(claim.owner);
      return now?.name !== standing.name || now.isEnding === true;
    };
    const until = host.runtime.now() + mayLastMs(asked);
    holds.takenAgain(claim.owner, node);
    void host
      .run(() => node.ask(() => kind.acquire(asked)))
      .then(async (reply) => {
        if (reply.status !== 'granted') return;
        // Released meanwhile: the node was asked for that before it had this.
        if (isOver()) host.leftovers.giveBack(node, asked, {}, until);
        else if (token !== undefined) await node.ask(() => kind.commit!(asked, token));
      })
      .catch((failure: unknown) => {
        if (!(failure instanceof StoreFailure) || isNotExecuted(failure)) return;
        if (isOver()) host.leftovers.giveBack(node, asked, { doubt: failure }, until);
        else holds.doubted(claim.owner, node, failure);
      });
  }

  private extended(claim: C, i: number, ballot: Ballot<Extending>): ExtendReply {
    const { host, holds } = this;
    const { nodes, majority } = host;
    const replies = ballot.votes.map((vote): readonly [QuorumNode, ExtendReply] => [
      vote.node,
      vote.status === 'answered' ? vote.answer[i]! : { status: 'failed', cause: vote.failure },
    ]);
    const held = replies.flatMap(([, reply]) => (reply.status === 'held' ? [reply.validForMs] : []));
    if (held.length >= majority) {
      holds.lengthened(claim);
      return { status: 'held', validForMs: withoutDrift(reachedBy(majority, held)) };
    }
    const lost = replies.flatMap(([, reply]) => (reply.status === 'lost' ? [reply] : []));
    if (lost.length > nodes.length - majority) {
      // What single nodes still have of it, or may have, is nobody's.
      const until = host.runtime.now() + mayLastMs(claim);
      const orphan = this.asNode(claim, holds.nameOf(claim.owner));
      const without = new Set(replies.flatMap(([node, { status }]) => (status === 'lost' ? [node] : [])));
      for (const node of nodes) {
        const doubt = holds.doubtAt(claim.owner, node);
        if (doubt || !without.has(node)) host.leftovers.giveBack(node, orphan, { doubt }, until);
      }
      const entered = lost.some((reply) => reply.entered);
      return { status: 'lost', ...(entered && { entered }) };
    }
    const failures = replies.flatMap(([node, reply]) =>
      reply.status === 'failed' ? [[node, asFailure(reply.cause)] as const] : [],
    );
    return { status: 'failed', cause: new QuorumFailure(new Map(failures), host, 'unknown') };
  }

  private async downgradeAll(claim: C): Promise<ExtendReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    host.asksFor(claim.leaseMs);
    const asked = { ...claim, owner: holds.nameOf(claim.owner) };
    const ballot = new Ballot<Extending>(nodes, (node) =>
      node.ask(async () => [await kindAt(node, claim.kind).downgrade!(asked)]),
    );
    await ballot.until(() => false, { runtime: host.runtime, leastMs: PATIENCE_MS });
    if (ballot.failures.size > nodes.length - majority) {
      throw new QuorumFailure(ballot.failures, host, 'unknown');
    }
    const reply = this.extended(claim, 0, ballot);
    if (reply.status === 'failed') throw reply.cause;
    return reply;
  }

  /**
   * Every node that may have it is asked. Where one does not answer it is asked again in the background: the key is free when
   * a majority has given it back.
   */
  private async releaseAtAll(claim: C, how: ReleaseOptions): Promise<ReleaseReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    const asked = this.asNode(claim, holds.nameOf(claim.owner));
    const acquired = holds.of(claim.owner)?.ballot;
    holds.ending(claim.owner);
    const isFinal = how.doubt !== undefined;
    if (isFinal) await acquired?.complete();
    const until = host.runtime.now() + mayLastMs(asked);
    const { keepForMs } = how;
    if (keepForMs !== undefined) host.asksFor(keepForMs);
    const ballot = new Ballot<ReleaseReply>(nodes, (node) =>
      holds.isNowhereAt(claim.owner, node)
        ? Promise.resolve(NOT_HELD)
        : kindAt(node, asked.kind).release(asked, { doubt: holds.doubtAt(claim.owner, node), keepForMs }),
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
    // A node whose answer to the acquire comes only now, and leaves it unknown, is asked once more.
    const voted = new Set(acquired?.votes.map(({ node }) => node));
    acquired?.onEach((vote) => {
      const doubt = voted.has(vote.node) ? undefined : doubtOf(vote);
      if (doubt) host.leftovers.giveBack(vote.node, asked, { doubt, keepForMs }, until);
    });
    ballot.onEach((vote) => {
      if (vote.status === 'failed') {
        host.leftovers.giveBack(vote.node, asked, { doubt: vote.failure, keepForMs }, until);
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

const asFailure = (cause: unknown): StoreFailure =>
  cause instanceof StoreFailure ? cause : new StoreFailure('the node has failed', 'unknown', { cause });
