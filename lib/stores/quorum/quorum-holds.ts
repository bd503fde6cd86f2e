import { CompactingMap } from '../../core/compacting.js';
import type { Runtime } from '../../core/runtime.js';
import { mayLastMs, type Claim } from '../../core/seam/claim.js';
import type { AcquireReply } from '../../core/seam/reply.js';
import type { StoreFailure } from '../../core/seam/store-failure.js';
import type { Ballot } from './ballot.js';
import { doubtOf, isNotExecuted } from './node-grants.js';
import type { QuorumNode } from './quorum-node.js';

/** Numbers of owners that this library gives stay far below. */
const OWN_NUMBERS = 2 ** 40;
const FIRST_SWEEP_AT = 1_000;

/** What is known of an owner that has asked. */
interface Standing {
  /** How it is called on the nodes. */
  readonly name: string;
  /** What the nodes said to its last acquire. */
  readonly ballot: Ballot<AcquireReply> | undefined;
  /** When all that the nodes may have of it has ended, unless it is lengthened. */
  until: number;
  /** How often in a row nobody was known to have a majority. */
  readonly splits: number;
  /** The last token that a majority knows of; undefined without. */
  token?: number;
  /** It is being released: nothing more is taken for it. */
  isEnding?: boolean;
  /** It has asked before under this name: what its last acquire was refused, an earlier one may have got. */
  hasAskedBefore?: boolean;
  /** The nodes that were asked to take again what they had lost. */
  again?: Set<QuorumNode>;
  /** Those of them that have not answered yet. */
  taking?: Set<QuorumNode>;
  /** Nodes that may still get it by a renewal that put it back there, and what left that unknown. */
  doubts?: Map<QuorumNode, StoreFailure>;
}

/**
 * Under which name an owner stands on the nodes, and what they said to it. A name is not used for a second try before it is
 * certain that nothing of the first is left: a release of the first that comes late would end the second.
 */
export class QuorumHolds {
  private readonly standings = new CompactingMap<string, Standing>();
  private count = 0;
  private sweepAt = FIRST_SWEEP_AT;

  constructor(private readonly runtime: Runtime) {}

  /** How many owners something is known of. */
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

  /** The node is to be asked to take again what it has lost. False when it is being asked already. */
  takesAgain(owner: string, node: QuorumNode): boolean {
    const standing = this.standings.get(owner);
    if (!standing || standing.taking?.has(node)) return false;
    (standing.again ??= new Set()).add(node);
    (standing.taking ??= new Set()).add(node);
    return true;
  }

  /** It has answered that, or failed. */
  tookAgain(owner: string, node: QuorumNode): void {
    this.standings.get(owner)?.taking?.delete(node);
  }

  /** Whether the node has nothing of the owner for certain: it was asked once, and that was not executed. */
  isNowhereAt(owner: string, node: QuorumNode): boolean {
    const standing = this.standings.get(owner);
    if (!standing?.ballot || standing.hasAskedBefore || standing.again?.has(node)) return false;
    const vote = standing.ballot.votes.find((one) => one.node === node);
    return vote?.status === 'failed' && isNotExecuted(vote.failure);
  }

  splitsOf(owner: string): number {
    return this.standings.get(owner)?.splits ?? 0;
  }

  /** What leaves it unknown whether the node has it, or gets it later. */
  doubtAt(owner: string, node: QuorumNode): StoreFailure | undefined {
    const standing = this.standings.get(owner);
    const vote = standing?.ballot?.votes.find((one) => one.node === node);
    return standing?.doubts?.get(node) ?? (vote && doubtOf(vote));
  }

  /** It is unknown whether the node has it again, or gets it later. */
  doubted(owner: string, node: QuorumNode, doubt: StoreFailure): void {
    const standing = this.standings.get(owner);
    if (standing) (standing.doubts ??= new Map()).set(node, doubt);
  }

  /** The owner asks, or has got what it asked for. */
  asked(claim: Claim, ballot: Ballot<AcquireReply>): void {
    const before = this.standings.get(claim.owner);
    this.note(claim, this.nameOf(claim.owner), ballot, this.splitsOf(claim.owner));
    if (before?.ballot) this.standings.get(claim.owner)!.hasAskedBefore = true;
  }

  /** Something of its last try may be left on a node: it has another name from now on. */
  rename(claim: Claim, splits: number): void {
    const { owner } = claim;
    const number = OWN_NUMBERS + ++this.count;
    this.note(claim, `${owner.slice(0, owner.lastIndexOf(':') + 1)}${number}`, undefined, splits);
  }

  /** The nodes have it for so much longer. */
  lengthened({ owner, leaseMs }: Claim): void {
    const standing = this.standings.get(owner);
    if (standing) standing.until = Math.max(standing.until, this.runtime.now() + 2 * leaseMs);
  }

  forget(owner: string): void {
    this.standings.delete(owner);
  }

  private note(claim: Claim, name: string, ballot: Ballot<AcquireReply> | undefined, splits: number): void {
    const now = this.runtime.now();
    if (this.standings.size >= this.sweepAt) this.sweep(now);
    const until = now + 2 * mayLastMs(claim);
    this.standings.set(claim.owner, { name, ballot, until, splits });
  }

  /** Owners that nobody released, because their lease was over. */
  private sweep(now: number): void {
    for (const owner of [...this.standings.keys()]) {
      if (this.standings.get(owner)!.until <= now) this.standings.delete(owner);
    }
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.standings.size * 2);
  }
}
