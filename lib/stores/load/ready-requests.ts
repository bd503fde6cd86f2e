interface Entry<Q> {
  readonly one: Q;
  readonly urgentFrom: number;
  readonly number: number;
}

/** Deleted entries that may stay, beside as many as there are requests. */
const MOST_DELETED = 64;

const isBefore = (a: Entry<unknown>, b: Entry<unknown>): boolean =>
  a.urgentFrom < b.urgentFrom || (a.urgentFrom === b.urgentFrom && a.number < b.number);

/**
 * Requests that may be sent. The first one is the most urgent, and of these the earliest. Tens of thousands may wait: a scan,
 * or a `Set` whose first members were deleted, would cost as much for each of them.
 *
 * Algorithm: a binary heap. A deleted request stays in it until it is the first, or too many are.
 */
export class ReadyRequests<Q> {
  private heap: Entry<Q>[] = [];
  private readonly entries = new Map<Q, Entry<Q>>();
  private added = 0;

  get first(): Q | undefined {
    for (let [entry] = this.heap; entry; [entry] = this.heap) {
      if (this.has(entry)) return entry.one;
      this.removeFirst();
    }
    return undefined;
  }

  /** All of them, in this order. */
  *[Symbol.iterator](): Generator<Q> {
    const seen: Entry<Q>[] = [];
    try {
      for (let [entry] = this.heap; entry; [entry] = this.heap) {
        this.removeFirst();
        if (!this.has(entry)) continue;
        seen.push(entry);
        yield entry.one;
      }
    } finally {
      for (const entry of seen) if (this.has(entry)) this.push(entry);
    }
  }

  add(one: Q, urgentFrom = Infinity): void {
    const entry: Entry<Q> = { one, urgentFrom, number: (this.added += 1) };
    this.entries.set(one, entry);
    this.push(entry);
  }

  /** Returns whether it was there. */
  delete(one: Q): boolean {
    const { entries } = this;
    if (!entries.delete(one)) return false;
    if (this.heap.length > 2 * entries.size + MOST_DELETED)
      this.heap = [...entries.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
    return true;
  }

  private has(entry: Entry<Q>): boolean {
    return this.entries.get(entry.one) === entry;
  }

  private push(entry: Entry<Q>): void {
    const { heap } = this;
    let at = heap.length;
    for (let up = (at - 1) >> 1; at > 0 && isBefore(entry, heap[up]!); up = (at - 1) >> 1) {
      heap[at] = heap[up]!;
      at = up;
    }
    heap[at] = entry;
  }

  private removeFirst(): void {
    const { heap } = this;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (let down = 1; down < heap.length; down = 2 * at + 1) {
      if (down + 1 < heap.length && isBefore(heap[down + 1]!, heap[down]!)) down += 1;
      if (!isBefore(heap[down]!, last)) break;
      heap[at] = heap[down]!;
      at = down;
    }
    heap[at] = last;
  }
}
