import { CompactingMap } from '../../core/compacting.js';
import type { Runtime } from '../../core/runtime.js';
import { mayLastMs, type Claim } from '../../core/seam/claim.js';
import type { AcquireReply } from '../../core/seam/reply.js';
import type { StoreFailure } from '../../core/seam/store-failure.js';
import type { QuorumCall } from './quorum-call.js';
import { doubtOf, isNotExecuted } from './node-grants.js';
import type { QuorumNode } from './quorum-node.js';

/** Owner numbers of this library stay far below this one. */
const OWN_NUMBERS = 2 ** 40;
const FIRST_SWEEP_AT = 1_000;

/** What is known of an owner that has requested a key. */
interface Standing {
  /** Name of the owner on the nodes. */
  readonly name: string;
  /** The quorum call of its last acquire. */
  readonly quorumCall: QuorumCall<AcquireReply> | undefined;
  /** Time at which everything that the nodes may have of it has ended, unless it is extended. */
  until: number;
  /** Number of consecutive requests after which no owner was known to have a majority. */
  readonly splits: number;
  /** Last token that a majority knows; undefined without tokens. */
  token?: number;
  /** Its release has begun: nothing more is acquired for it. */
  isEnding?: boolean;
  /** It has made an earlier request under this name, which may have got what the last acquire was refused. */
  hasAskedBefore?: boolean;
  /** Nodes that were asked to reacquire a hold that they had lost. */
  again?: Set<QuorumNode>;
  /** The ones of them that have not replied yet. */
  taking?: Set<QuorumNode>;
  /** Nodes that may still get the hold by such a reacquire, and the failure that leaves this unknown. */
  doubts?: Map<QuorumNode, StoreFailure>;
}

/**
 * Names of owners on the nodes, and the replies of the nodes. A name is not used for a second attempt before it is
 * certain that nothing of the first is left: a late release of the first would end the second.
 */
export class QuorumHolds {
  private readonly standings = new CompactingMap<string, Standing>();
  private count = 0;
  private sweepAt = FIRST_SWEEP_AT;

  constructor(private readonly runtime: Runtime) {}

  /** Number of known owners. */
  get size(): number {
    return this.standings.size;
  }

  of(owner: string): Standing | undefined {
    return this.standings.get(owner);
  }

  nameOf(owner: string): string {
    return this.standings.get(owner)?.name ?? owner;
  }

  committed(owner: string, token: number): void {
    const standing = this.standings.get(owner);
    if (standing) standing.token = token;
  }

  ending(owner: string): void {
    const standing = this.standings.get(owner);
    if (standing) standing.isEnding = true;
  }

  /** Records that the node is asked to reacquire a lost hold. Returns false when it is being asked already. */
  takesAgain(owner: string, node: QuorumNode): boolean {
    const standing = this.standings.get(owner);
    if (!standing || standing.taking?.has(node)) return false;
    (standing.again ??= new Set()).add(node);
    (standing.taking ??= new Set()).add(node);
    return true;
  }

  /** Records that the node has replied to that, or failed. */
  tookAgain(owner: string, node: QuorumNode): void {
    this.standings.get(owner)?.taking?.delete(node);
  }

  /** Returns whether the node certainly has nothing of the owner: its only request was not executed. */
  isNowhereAt(owner: string, node: QuorumNode): boolean {
    const standing = this.standings.get(owner);
    if (!standing?.quorumCall || standing.hasAskedBefore || standing.again?.has(node)) return false;
    const nodeReply = standing.quorumCall.nodeReplies.find((one) => one.node === node);
    return nodeReply?.status === 'failed' && isNotExecuted(nodeReply.failure);
  }

  splitsOf(owner: string): number {
    return this.standings.get(owner)?.splits ?? 0;
  }

  /** Returns the failure that leaves it unknown whether the node has the hold, or gets it later. */
  doubtAt(owner: string, node: QuorumNode): StoreFailure | undefined {
    const standing = this.standings.get(owner);
    const nodeReply = standing?.quorumCall?.nodeReplies.find((one) => one.node === node);
    return standing?.doubts?.get(node) ?? (nodeReply && doubtOf(nodeReply));
  }

  /** Records that it is unknown whether the node has the hold again, or gets it later. */
  doubted(owner: string, node: QuorumNode, uncertain: StoreFailure): void {
    const standing = this.standings.get(owner);
    if (standing) (standing.doubts ??= new Map()).set(node, uncertain);
  }

  /** Records a request of the owner, or its grant. */
  asked(claim: Claim, quorumCall: QuorumCall<AcquireReply>): void {
    const before = this.standings.get(claim.owner);
    this.note(claim, this.nameOf(claim.owner), quorumCall, this.splitsOf(claim.owner));
    if (before?.quorumCall) this.standings.get(claim.owner)!.hasAskedBefore = true;
  }

  /** Gives the owner another name, because something of its last attempt may be left on a node. */
  rename(claim: Claim, splits: number): void {
    const { owner } = claim;
    const number = OWN_NUMBERS + ++this.count;
    this.note(claim, `${owner.slice(0, owner.lastIndexOf(':') + 1)}${number}`, undefined, splits);
  }

  /** Records that the nodes have extended the hold. */
  lengthened({ owner, leaseMs }: Claim): void {
    const standing = this.standings.get(owner);
    if (standing) standing.until = Math.max(standing.until, this.runtime.now() + 2 * leaseMs);
  }

  forget(owner: string): void {
    this.standings.delete(owner);
  }

  private note(
    claim: Claim,
    name: string,
    quorumCall: QuorumCall<AcquireReply> | undefined,
    splits: number,
  ): void {
    const now = this.runtime.now();
    if (this.standings.size >= this.sweepAt) this.sweep(now);
    const until = now + 2 * mayLastMs(claim);
    this.standings.set(claim.owner, { name, quorumCall, until, splits });
  }

  /** Forgets owners that were never released, because their lease expired. */
  private sweep(now: number): void {
    for (const owner of [...this.standings.keys()]) {
      if (this.standings.get(owner)!.until <= now) this.standings.delete(owner);
    }
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.standings.size * 2);
  }
}
