import type { Runtime } from '../../../core/runtime.js';
import { QuorumCall, majorityOf } from './quorum-call.js';
import { clockOff, type ClockSeen } from './clocks.js';
import type { QuorumNode } from './quorum-node.js';

/** Compares the wall clocks of the nodes. */
export class NodeClocks {
  /** Clocks at the last comparison. */
  private known: readonly (ClockSeen | undefined)[] = [];
  private offs: ReadonlyMap<QuorumNode, number | undefined> = new Map();

  constructor(
    private readonly nodesOf: () => readonly QuorumNode[],
    private readonly runtime: Runtime,
  ) {}

  private get nodes(): readonly QuorumNode[] {
    return this.nodesOf();
  }

  /**
   * Returns by how many ms the node's clock is too far off; undefined when it is not. It is called several times for
   * each lock, so it compares again only when a clock has changed.
   */
  off(node: QuorumNode): number | undefined {
    const { nodes } = this;
    if (nodes.some(({ clock }, i) => clock !== this.known[i])) {
      this.known = nodes.map(({ clock }) => clock);
      const all = this.known.filter((clock) => clock !== undefined);
      this.offs = new Map(nodes.map((one) => [one, one.clock && clockOff(one.clock, all)]));
    }
    return this.offs.get(node);
  }

  /** Returns by how many ms a token, and so the clock behind it, is too far ahead; undefined when it is not. */
  tokenAhead(tokenMs: number): number | undefined {
    const reported = { aheadMs: tokenMs - this.runtime.now(), uncertainMs: 0 };
    const off = clockOff(reported, this.last);
    return off !== undefined && off > 0 ? off : undefined;
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
}
