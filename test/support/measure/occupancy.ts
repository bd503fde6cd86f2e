/** Counts who is inside each key's section in this process, and how often somebody was not alone. */
export class Occupancy {
  private readonly inside = new Map<string, number>();
  overlaps = 0;

  enter(key: string): void {
    const others = this.inside.get(key) ?? 0;
    if (others > 0) this.overlaps++;
    this.inside.set(key, others + 1);
  }

  leave(key: string): void {
    const left = this.inside.get(key)! - 1;
    if (left === 0) this.inside.delete(key);
    else this.inside.set(key, left);
  }
}
