import { mayLastMs, type Claim } from '../../core/seam/claim.js';
import type { ExtendReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { Ballot, PATIENCE_MS } from './ballot.js';
import { asNode, isNotExecuted } from './node-grants.js';
import { QuorumFailure } from './quorum-failure.js';
import type { QuorumHolds } from './quorum-holds.js';
import type { QuorumHost } from './quorum-host.js';
import { kindAt, type QuorumNode } from './quorum-node.js';
import { reachedBy, withoutDrift } from './validity.js';

type Extending = readonly ExtendReply[];

/** Renews holds that a majority of nodes has granted, and puts them back on nodes that have lost them. */
export class QuorumRenewal<C extends Claim> {
  constructor(
    private readonly host: QuorumHost,
    private readonly holds: QuorumHolds,
  ) {}

  async extendMany(claims: readonly C[]): Promise<readonly ExtendReply[]> {
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
        const reply = replies[i]!;
        if (reply.status === 'held' && vote.answer[i]!.status === 'lost')
          this.takeAgain(vote.node, claim, reply.validForMs);
      });
    });
    return replies;
  }

  /**
   * Reacquires a hold at a node that lacks it, and commits the token there: the node was away, or has forgotten. Thus
   * the hold outlives the next node that goes. The lease is at least the remaining one, because `extendMany` may also
   * be called to look only.
   */
  private takeAgain(node: QuorumNode, claim: C, leftMs: number): void {
    const { holds, host } = this;
    const standing = holds.of(claim.owner);
    if (!standing || standing.isEnding) return;
    const leaseMs = Math.max(claim.leaseMs, Math.ceil(leftMs));
    const asked: C = { ...asNode(claim, standing.name), leaseMs, tokens: 0 };
    const kind = kindAt(node, claim.kind);
    const { token } = standing;
    const isOver = (): boolean => {
      const now = holds.of(claim.owner);
      return now?.name !== standing.name || now.isEnding === true;
    };
    const until = host.runtime.now() + mayLastMs(asked);
    if (!holds.takesAgain(claim.owner, node)) return;
    void host
      .run(() => node.ask(() => kind.acquire(asked)))
      .then(async (reply) => {
        if (reply.status !== 'granted') return;
        // The release reached this node before the acquire: undo the late grant.
        if (isOver()) host.leftovers.giveBack(node, asked, {}, until);
        else if (token !== undefined) await node.ask(() => kind.commit!(asked, token));
      })
      .catch((failure: unknown) => {
        if (!(failure instanceof StoreFailure) || isNotExecuted(failure)) return;
        if (isOver()) host.leftovers.giveBack(node, asked, { doubt: failure }, until);
        else holds.doubted(claim.owner, node, failure);
      })
      .finally(() => holds.tookAgain(claim.owner, node));
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
      // Release what single nodes still have of it, or may have: no owner wants it.
      const until = host.runtime.now() + mayLastMs(claim);
      const orphan = asNode(claim, holds.nameOf(claim.owner));
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

  async downgrade(claim: C): Promise<ExtendReply> {
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
}

const asFailure = (cause: unknown): StoreFailure =>
  cause instanceof StoreFailure ? cause : new StoreFailure('the node has failed', 'unknown', { cause });
