import { CompactingMap } from '../../../core/util/compacting.js';
import type { Runtime } from '../../../core/util/runtime.js';
import { mayLastMs, type Claim } from '../../../core/seam/claim.js';
import type { AcquireReply } from '../../../core/seam/reply.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import type { QuorumCall } from './quorum-call.js';
import { doubtOf, isNotExecuted } from './node-grants.js';
import type { QuorumNode } from './quorum-node.js';

/** Owner numbers of this library stay far below this one. */
const OWN_NUMBERS = 2 ** 40;
const FIRST_SWEEP_AT = 1_000;

/** What is known of an owner that has requested a key. */
interface HoldRecord {
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
  isRepeated?: boolean;
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
  private readonly records = new CompactingMap<string, HoldRecord>();
  private count = 0;
  private sweepAt = FIRST_SWEEP_AT;

  constructor(private readonly runtime: Runtime) {}

  of(owner: string): HoldRecord | undefined {
    return this.records.get(owner);
  }

  nameOf(owner: string): string {
    return this.records.get(owner)?.name ?? owner;
  }

  committed(owner: string, token: number): void {
    const record = this.records.get(owner);
    if (record) record.token = token;
  }

  ending(owner: string): void {
    const record = this.records.get(owner);
    if (record) record.isEnding = true;
  }

  /** Records that the node is asked to reacquire a lost hold. Returns false when it is being asked already. */
  takesAgain(owner: string, node: QuorumNode): boolean {
    const record = this.records.get(owner);
    if (!record || record.taking?.has(node)) return false;
    (record.again ??= new Set()).add(node);
    (record.taking ??= new Set()).add(node);
    return true;
  }

  /** Records that the node has replied to that, or failed. */
  tookAgain(owner: string, node: QuorumNode): void {
    this.records.get(owner)?.taking?.delete(node);
  }

  /** Returns whether the node certainly has nothing of the owner: its only request was not executed. */
  isNowhereAt(owner: string, node: QuorumNode): boolean {
    const record = this.records.get(owner);
    if (!record?.quorumCall || record.isRepeated || record.again?.has(node)) return false;
    const nodeReply = record.quorumCall.nodeReplies.find((one) => one.node === node);
    return nodeReply?.status === 'failed' && isNotExecuted(nodeReply.failure);
  }

  splitsOf(owner: string): number {
    return this.records.get(owner)?.splits ?? 0;
  }

  /** Returns the failure that leaves it unknown whether the node has the hold, or gets it later. */
  doubtAt(owner: string, node: QuorumNode): StoreFailure | undefined {
    const record = this.records.get(owner);
    const nodeReply = record?.quorumCall?.nodeReplies.find((one) => one.node === node);
    return record?.doubts?.get(node) ?? (nodeReply && doubtOf(nodeReply));
  }

  /** Records that it is unknown whether the node has the hold again, or gets it later. */
  doubted(owner: string, node: QuorumNode, uncertain: StoreFailure): void {
    const record = this.records.get(owner);
    if (record) (record.doubts ??= new Map()).set(node, uncertain);
  }

  /** Records a request of the owner, or its grant. */
  requested(claim: Claim, quorumCall: QuorumCall<AcquireReply>): void {
    const before = this.records.get(claim.owner);
    this.note(claim, this.nameOf(claim.owner), quorumCall, this.splitsOf(claim.owner));
    if (before?.quorumCall) this.records.get(claim.owner)!.isRepeated = true;
  }

  /** Gives the owner another name, because something of its last attempt may be left on a node. */
  rename(claim: Claim, splits: number): void {
    const { owner } = claim;
    const number = OWN_NUMBERS + ++this.count;
    this.note(claim, `${owner.slice(0, owner.lastIndexOf(':') + 1)}${number}`, undefined, splits);
  }

  /** Records that the nodes have extended the hold. */
  lengthened({ owner, leaseMs }: Claim): void {
    const record = this.records.get(owner);
    if (record) record.until = Math.max(record.until, this.runtime.now() + 2 * leaseMs);
  }

  forget(owner: string): void {
    this.records.delete(owner);
  }

  private note(
    claim: Claim,
    name: string,
    quorumCall: QuorumCall<AcquireReply> | undefined,
    splits: number,
  ): void {
    const now = this.runtime.now();
    if (this.records.size >= this.sweepAt) this.sweep(now);
    const until = now + 2 * mayLastMs(claim);
    this.records.set(claim.owner, { name, quorumCall, until, splits });
  }

  /** Forgets owners that were never released, because their lease expired. */
  private sweep(now: number): void {
    for (const owner of [...this.records.keys()]) {
      if (this.records.get(owner)!.until <= now) this.records.delete(owner);
    }
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.records.size * 2);
  }
}
