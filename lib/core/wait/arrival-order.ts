/** Fewer positions than this are not worth a smaller tree. */
const MIN_POSITIONS = 64;

/**
 * Members in the order of their arrival. The number of steps to count the members before one of them grows with the
 * logarithm of the crowd: thousands of callers may ask for it at the same time.
 *
 * It uses a Fenwick tree over the positions. The tree is built at the first count, since most crowds are never counted,
 * and built again once its positions are used up.
 */
export class ArrivalOrder<T> {
  /** Positions of the members. */
  private readonly members = new Map<T, number>();
  private tree: Int32Array | undefined;
  private nextPosition = 1;

  get size(): number {
    return this.members.size;
  }

  /** The member that came first. */
  get first(): T | undefined {
    const [first] = this.members.keys();
    return first;
  }

  /** All members at this moment. */
  get all(): readonly T[] {
    return [...this.members.keys()];
  }

  add(member: T): void {
    const position = this.nextPosition++;
    this.members.set(member, position);
    if (this.tree && position >= this.tree.length) this.tree = undefined;
    this.count(position, 1);
  }

  delete(member: T): void {
    const position = this.members.get(member);
    if (position === undefined) return;
    this.members.delete(member);
    this.count(position, -1);
  }

  /** How many came before a member, and are there still; 0 for one that has left. */
  aheadOf(member: T): number {
    if (!this.members.has(member)) return 0;
    const tree = (this.tree ??= this.build());
    let ahead = 0;
    for (let at = this.members.get(member)! - 1; at > 0; at -= at & -at) ahead += tree[at]!;
    return ahead;
  }

  private count(position: number, change: 1 | -1): void {
    const { tree } = this;
    if (!tree) return;
    for (let at = position; at < tree.length; at += at & -at) tree[at]! += change;
  }

  /** Gives the members the first positions, with room for as many more. */
  private build(): Int32Array {
    this.nextPosition = 1;
    const tree = new Int32Array(2 * Math.max(this.members.size, MIN_POSITIONS) + 1);
    for (const member of this.members.keys()) {
      const position = this.nextPosition++;
      this.members.set(member, position);
      tree[position] = 1;
    }
    for (let at = 1; at < tree.length; at++) {
      const above = at + (at & -at);
      if (above < tree.length) tree[above]! += tree[at]!;
    }
    return tree;
  }
}
