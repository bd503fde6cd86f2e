import { mayLastMs, type Claim } from '../../core/seam/claim.js';
import type { ExtendReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { QuorumCall, SILENT_NODES_MS } from './quorum-call.js';
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
    const quorumCall = new QuorumCall<Extending>(nodes, (node) =>
      node.ask(() => kindAt(node, kind).extendMany(asked)),
    );
    const most = nodes.length - majority;
    await quorumCall.until((answers) =>
      claims.every((_, i) => {
        const held = answers.filter((replies) => replies[i]!.status === 'held').length;
        const lost = answers.filter((replies) => replies[i]!.status === 'lost').length;
        return held >= majority || lost > most;
      }),
    );
    if (quorumCall.failures.size > most) throw new QuorumFailure(quorumCall.failures, host, 'unknown');
    const replies = claims.map((claim, i) => this.extended(claim, i, quorumCall));
    quorumCall.onEach((nodeReply) => {
      if (nodeReply.status !== 'answered') return;
      claims.forEach((claim, i) => {
        const reply = replies[i]!;
        if (reply.status === 'held' && nodeReply.answer[i]!.status === 'lost')
          this.takeAgain(nodeReply.node, claim, reply.validForMs);
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
        if (isOver()) host.pendingReleases.add(node, asked, {}, until);
        else if (token !== undefined) await node.ask(() => kind.commit!(asked, token));
      })
      .catch((failure: unknown) => {
        if (!(failure instanceof StoreFailure) || isNotExecuted(failure)) return;
        if (isOver()) host.pendingReleases.add(node, asked, { uncertain: failure }, until);
        else holds.doubted(claim.owner, node, failure);
      })
      .finally(() => holds.tookAgain(claim.owner, node));
  }

  private extended(claim: C, i: number, quorumCall: QuorumCall<Extending>): ExtendReply {
    const { host, holds } = this;
    const { nodes, majority } = host;
    const replies = quorumCall.nodeReplies.map((nodeReply): readonly [QuorumNode, ExtendReply] => [
      nodeReply.node,
      nodeReply.status === 'answered' ? nodeReply.answer[i]! : { status: 'failed', cause: nodeReply.failure },
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
        const uncertain = holds.doubtAt(claim.owner, node);
        if (uncertain || !without.has(node)) host.pendingReleases.add(node, orphan, { uncertain }, until);
      }
      const intruder = lost.some((reply) => reply.intruder);
      return { status: 'lost', ...(intruder && { intruder }) };
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
    const quorumCall = new QuorumCall<Extending>(nodes, (node) =>
      node.ask(async () => [await kindAt(node, claim.kind).downgrade!(asked)]),
    );
    await quorumCall.until(() => false, { runtime: host.runtime, minMs: SILENT_NODES_MS });
    if (quorumCall.failures.size > nodes.length - majority) {
      throw new QuorumFailure(quorumCall.failures, host, 'unknown');
    }
    const reply = this.extended(claim, 0, quorumCall);
    if (reply.status === 'failed') throw reply.cause;
    return reply;
  }
}

const asFailure = (cause: unknown): StoreFailure =>
  cause instanceof StoreFailure ? cause : new StoreFailure('the node has failed', 'unknown', { cause });
