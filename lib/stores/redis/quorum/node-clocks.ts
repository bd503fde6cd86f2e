import type { Runtime } from '../../../core/util/runtime.js';
import { QuorumCall, majorityOf } from './quorum-call.js';
import { clockOff, leadOff, MARGIN_MS, MAX_UNCERTAIN_MS, type ClockSeen } from './clocks.js';
import type { QuorumNode } from './quorum-node.js';
import { LOOK_FIRST_MS, type Seen } from './server-info.js';

/** The clock that proposes tokens: the latest one. */
interface Proposer {
  /** What the clock shows when a request arrives, minus the time at which this process sends it, in ms. */
  readonly aheadMs: number;
  readonly tokensPerMs: number;
  /** Time at which the last look at a clock is too long ago. */
  readonly until: number;
}

/** Compares the wall clocks of the nodes. */
export class NodeClocks {
  /** Server info at the last comparison. */
  private known: readonly (Seen | undefined)[] = [];
  private offs: ReadonlyMap<QuorumNode, number | undefined> = new Map();
  private proposer: Proposer | undefined;

  constructor(
    private readonly nodesOf: () => readonly QuorumNode[],
    private readonly runtime: Runtime,
  ) {}

  private get nodes(): readonly QuorumNode[] {
    return this.nodesOf();
  }

  /** Returns by how many ms the node's clock is too far off; undefined when it is not. */
  off(node: QuorumNode): number | undefined {
    this.compare();
    return this.offs.get(node);
  }

  /**
   * Returns a token that no clock has reached yet when a request of this moment arrives. So each node can give just this
   * token, if the request takes no longer than the last look did. Undefined while no clock is known well enough.
   *
   * In whole ms, so that the claims of one moment have the same text. Nodes that know of a larger token give that one.
   */
  proposedToken(): number | undefined {
    this.compare();
    const { proposer } = this;
    const now = this.runtime.now();
    if (!proposer || now >= proposer.until) return undefined;
    return Math.ceil(now + proposer.aheadMs + MARGIN_MS) * proposer.tokensPerMs;
  }

  /** Returns by how many ms a token, and so the clock behind it, is too far ahead; undefined when it is not. */
  tokenAhead(tokenMs: number): number | undefined {
    return leadOff(tokenMs - this.runtime.now(), this.last);
  }

  /**
   * Asks the node and a majority for their clocks, and resolves with by how many ms the node's clock is too far off;
   * undefined when it is not. The majority is needed after this process and its clock have stood still: the first
   * server that it asks would seem to be ahead of all others.
   */
  async lookAgain(node: QuorumNode): Promise<number | undefined> {
    const { nodes } = this;
    const looks = new Map(nodes.map((one) => [one, one.look()]));
    const all = new QuorumCall(nodes, (one) => looks.get(one)!);
    await Promise.all([looks.get(node), all.until((seen) => seen.length >= majorityOf(nodes.length))]);
    return node.lastClock && clockOff(node.lastClock, this.last);
  }

  /** Last known clocks, including those of nodes with a new connection whose server has not been asked yet. */
  private get last(): readonly ClockSeen[] {
    return this.nodes.flatMap(({ lastClock }) => (lastClock ? [lastClock] : []));
  }

  /** Compares the clocks again when one has changed: this is called several times for each lock. */
  private compare(): void {
    const { nodes } = this;
    if (!nodes.some(({ seen }, i) => seen !== this.known[i])) return;
    this.known = nodes.map(({ seen }) => seen);
    const all = this.known.flatMap((seen) => (seen ? [seen.clock] : []));
    this.offs = new Map(nodes.map((node) => [node, node.seen && clockOff(node.seen.clock, all)]));
    this.proposer = proposerOf(
      nodes.flatMap((node) => (node.seen && this.offs.get(node) === undefined ? [node.seen] : [])),
    );
  }
}

/** Returns the latest of the clocks that are known well enough. A server that is down keeps one that becomes too old. */
const proposerOf = (trusted: readonly Seen[]): Proposer | undefined => {
  const lastAt = Math.max(...trusted.map(({ at }) => at));
  const until = lastAt + LOOK_FIRST_MS;
  let latest: Proposer | undefined;
  for (const { clock, tokensPerMs, at } of trusted) {
    if (tokensPerMs === undefined || clock.uncertainMs > MAX_UNCERTAIN_MS) continue;
    if (at + LOOK_FIRST_MS <= lastAt) continue;
    // The uncertainty is half the time of the look: with it, the way of the look counts in full.
    const aheadMs = clock.aheadMs + clock.uncertainMs;
    if (!latest || aheadMs > latest.aheadMs) latest = { aheadMs, tokensPerMs, until };
  }
  return latest;
};
