import { FIRST_SWEEP_AT, left, type Timed } from './space-clock.js';

/** A reader of a key; `at` is its index in the heap. */
interface Reader extends Timed {
  readonly owner: string;
  at: number;
}

const endOf = ({ since, leaseMs }: Timed): number => since + leaseMs;

/**
 * The readers of one key, in a heap with the longest lease on top. An expired reader stays until it leaves, all have
 * expired, or a sweep comes; until then it is hidden. So no operation visits all readers, except for a sweep each time
 * their number has doubled.
 */
export class Readers {
  private readonly byOwner = new Map<string, Reader>();
  private readonly heap: Reader[] = [];
  private sweepAt = FIRST_SWEEP_AT;

  get isEmpty(): boolean {
    return this.heap.length === 0;
  }

  /** The longest lease. There are readers unless it has expired. */
  get longest(): Timed | undefined {
    return this.heap[0];
  }

  get(owner: string, now: number): Timed | undefined {
    const reader = this.byOwner.get(owner);
    return reader && left(reader, now) > 0 ? reader : undefined;
  }

  /** Returns the readers whose leases run. */
  alive(now: number): readonly (readonly [owner: string, lease: Timed])[] {
    return [...this.byOwner].filter(([, reader]) => left(reader, now) > 0);
  }

  set(owner: string, { since, leaseMs }: Timed): void {
    const known = this.byOwner.get(owner);
    if (!known && this.heap.length >= this.sweepAt) this.sweep(since);
    const reader = { owner, since, leaseMs, at: known?.at ?? this.heap.length };
    this.byOwner.set(owner, reader);
    this.put(reader, reader.at);
    this.settle(reader);
  }

  delete(owner: string): void {
    const reader = this.byOwner.get(owner);
    if (!reader) return;
    this.byOwner.delete(owner);
    const last = this.heap.pop()!;
    if (last === reader) return;
    this.put(last, reader.at);
    this.settle(last);
  }

  clear(): void {
    this.byOwner.clear();
    this.heap.length = 0;
  }

  private sweep(now: number): void {
    for (const { owner } of [...this.heap].filter((reader) => left(reader, now) <= 0)) this.delete(owner);
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.heap.length * 2);
  }

  private put(reader: Reader, at: number): void {
    this.heap[at] = reader;
    reader.at = at;
  }

  /** Moves a reader up past readers that end sooner, or down past readers that end later. */
  private settle(reader: Reader): void {
    for (;;) {
      const { at } = reader;
      const above = this.heap[(at - 1) >> 1];
      const [one, two] = [this.heap[2 * at + 1], this.heap[2 * at + 2]];
      const below = one && two && endOf(two) > endOf(one) ? two : one;
      const other =
        at > 0 && above && endOf(reader) > endOf(above)
          ? above
          : below && endOf(below) > endOf(reader)
            ? below
            : undefined;
      if (!other) return;
      const there = other.at;
      this.put(other, at);
      this.put(reader, there);
    }
  }
}
