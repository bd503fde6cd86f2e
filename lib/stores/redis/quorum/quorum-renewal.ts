import { mayLastMs, type Claim } from '../../../core/seam/claim.js';
import type { ExtendReply } from '../../../core/seam/reply.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import { asNode, isNotExecuted } from './node-grants.js';
import { QuorumCall, SILENT_NODES_MS, QuorumFailure } from './quorum-call.js';
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
    const requested = claims.map((claim) => {
      host.noteLease(claim.leaseMs);
      return { ...claim, owner: holds.nameOf(claim.owner) };
    });
    const kind = claims[0]!.kind;
    const quorumCall = new QuorumCall<Extending>(nodes, (node) =>
      node.request(() => kindAt(node, kind).extendMany(requested)),
    );
    await quorumCall.until(this.isDecided);
    if (quorumCall.failures.size > nodes.length - majority)
      throw new QuorumFailure(quorumCall.failures, host, 'unknown');
    const replies = claims.map((claim, i) => this.extended(claim, i, quorumCall));
    quorumCall.onEach((nodeReply) => {
      if (nodeReply.status !== 'answered') return;
      claims.forEach((claim, i) => {
        const reply = replies[i]!;
        if (reply.status === 'held' && nodeReply.reply[i]!.status === 'lost')
          this.takeAgain(nodeReply.node, claim, reply.validForMs);
      });
    });
    return replies;
  }

  /** Whether each claim is held at a majority of nodes, or can be no more. */
  private readonly isDecided = (nodeReplies: readonly Extending[]): boolean => {
    const { nodes, majority } = this.host;
    const most = nodes.length - majority;
    const count = (i: number, status: ExtendReply['status']): number =>
      nodeReplies.filter((replies) => replies[i]!.status === status).length;
    const [first] = nodeReplies;
    return (
      first !== undefined && first.every((_, i) => count(i, 'held') >= majority || count(i, 'lost') > most)
    );
  };

  /**
   * Reacquires a hold at a node that lacks it, and commits the token there: the node was away, or has forgotten. Thus
   * the hold outlives the next node that goes. The lease is at least the remaining one, because `extendMany` may also
   * be called to look only.
   */
  private takeAgain(node: QuorumNode, claim: C, leftMs: number): void {
    const { holds, host } = this;
    const record = holds.of(claim.owner);
    if (!record || record.isEnding) return;
    const leaseMs = Math.max(claim.leaseMs, Math.ceil(leftMs));
    const requested: C = { ...asNode(claim, record.name), leaseMs, tokens: 0 };
    const kind = kindAt(node, claim.kind);
    const { token } = record;
    const isOver = (): boolean => {
      const now = holds.of(claim.owner);
      return now?.name !== record.name || now.isEnding === true;
    };
    const until = host.runtime.now() + mayLastMs(requested);
    if (!holds.takesAgain(claim.owner, node)) return;
    void host
      .run(() => node.request(() => kind.acquire(requested)))
      .then(async (reply) => {
        if (reply.status !== 'granted') return;
        // The release reached this node before the acquire: undo the late grant.
        if (isOver()) node.undo.begin({ claim: requested, until });
        else if (token !== undefined) await node.request(() => kind.commit!(requested, token));
      })
      .catch((failure: unknown) => {
        if (!(failure instanceof StoreFailure) || isNotExecuted(failure)) return;
        if (isOver()) node.undo.begin({ claim: requested, uncertain: failure, until });
        else holds.doubted(claim.owner, node, failure);
      })
      .finally(() => holds.tookAgain(claim.owner, node));
  }

  private extended(claim: C, i: number, quorumCall: QuorumCall<Extending>): ExtendReply {
    const { host, holds } = this;
    const { nodes, majority } = host;
    const replies = quorumCall.nodeReplies.map((nodeReply): readonly [QuorumNode, ExtendReply] => [
      nodeReply.node,
      nodeReply.status === 'answered' ? nodeReply.reply[i]! : { status: 'failed', cause: nodeReply.failure },
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
      const requested = asNode(claim, holds.nameOf(claim.owner));
      const without = new Set(replies.flatMap(([node, { status }]) => (status === 'lost' ? [node] : [])));
      for (const node of nodes) {
        const uncertain = holds.doubtAt(claim.owner, node);
        if (uncertain || !without.has(node)) node.undo.begin({ claim: requested, uncertain, until });
      }
      const intruder = lost.some((reply) => reply.intruder);
      return { status: 'lost', ...(intruder && { intruder }) };
    }
    const failures = new Map(quorumCall.failures);
    for (const [node, reply] of replies)
      if (reply.status === 'failed') failures.set(node, asFailure(reply.cause));
    return { status: 'failed', cause: new QuorumFailure(failures, host, 'unknown') };
  }

  async downgrade(claim: C): Promise<ExtendReply> {
    const { host, holds } = this;
    const { nodes, majority } = host;
    host.noteLease(claim.leaseMs);
    const requested = { ...claim, owner: holds.nameOf(claim.owner) };
    const quorumCall = new QuorumCall<Extending>(nodes, (node) =>
      node.request(async () => [await kindAt(node, claim.kind).downgrade!(requested)]),
    );
    // Readers come in where it has arrived: all nodes get a moment.
    await quorumCall.until(() => false, { runtime: host.runtime, minMs: SILENT_NODES_MS });
    await quorumCall.until(this.isDecided);
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
