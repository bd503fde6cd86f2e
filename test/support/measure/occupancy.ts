/** Who enters and leaves the sections of keys. */
export interface Door {
  enter(key: string): void;
  leave(key: string): void;
}

/** Counts who is inside each key's section in this process, and how often somebody was not alone. */
export class Occupancy implements Door {
  private readonly inside = new Map<string, number>();
  overlaps = 0;

  /** The same for sections that so many may be in at once. */
  of(limit: number): Door {
    return { enter: (key) => this.enter(key, limit), leave: (key) => this.leave(key) };
  }

  enter(key: string, limit = 1): void {
    const others = this.inside.get(key) ?? 0;
    if (others >= limit) this.overlaps++;
    this.inside.set(key, others + 1);
  }

  leave(key: string): void {
    const left = this.inside.get(key)! - 1;
    if (left === 0) this.inside.delete(key);
    else this.inside.set(key, left);
  }
}
