import type { Runtime } from '../../core/runtime.js';
import { Ballot, majorityOf } from './ballot.js';
import { clockOff, type ClockSeen } from './clocks.js';
import type { QuorumNode } from './quorum-node.js';

/** The wall clocks of the nodes beside each other. */
export class NodeClocks {
  /** What was known when it was last found out which of them are off. */
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
   * By how many ms the node's clock is too far off; undefined when it is not. Asked several times for each lock, and found out
   * anew only when something new is known of a clock.
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

  /** By how many ms a token is too far ahead, which says that of its clock; undefined when it is not. */
  tokenAhead(tokenMs: number): number | undefined {
    const told = { aheadMs: tokenMs - this.runtime.now(), uncertainMs: 0 };
    const off = clockOff(told, this.last);
    return off !== undefined && off > 0 ? off : undefined;
  }

  /**
   * Looks anew at the node's clock, and at those of a majority: a process that stood still with its own clock would take the
   * first server that it looks at for ahead of all others. By how many ms it is too far off then.
   */
  async lookAgain(node: QuorumNode): Promise<number | undefined> {
    const { nodes } = this;
    const looks = new Map(nodes.map((one) => [one, one.look()]));
    const all = new Ballot(nodes, (one) => looks.get(one)!);
    await Promise.all([looks.get(node), all.until((seen) => seen.length >= majorityOf(nodes.length))]);
    return node.lastClock && clockOff(node.lastClock, this.last);
  }

  /** Also of nodes to which there is a new connection, whose server has not been asked yet. */
  private get last(): readonly ClockSeen[] {
    return this.nodes.flatMap(({ lastClock }) => (lastClock ? [lastClock] : []));
  }
}
