/** Something that will happen; `cancelled` takes it off the agenda. */
export interface Appointment {
  readonly at: number;
  cancelled: boolean;
}

interface Entry extends Appointment {
  readonly order: number;
  readonly action: () => void;
  /** No promise can be settled by it, so nothing has to be waited for after it. */
  readonly quiet: boolean;
}

const before = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/**
 * Virtual time. What happens is on one agenda, by time and then by the order in which it was put there. After each
 * appointment all that follows from it without more time passing (microtasks) is done before the next.
 */
export class Agenda {
  /** In ms since the beginning. */
  now = 0;
  /** Called whenever all has come to rest after an appointment. */
  onRest: () => void = () => undefined;
  private readonly heap: Entry[] = [];
  private count = 0;

  at(time: number, action: () => void): Appointment {
    return this.put(time, action, false);
  }

  /** For what settles no promise: it is cheaper. */
  quietly(time: number, action: () => void): Appointment {
    return this.put(time, action, true);
  }

  /** Lets time pass until it is `until`, or `isOver` says so, or nothing is left to happen. */
  pass(until: number, isOver: () => boolean = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      const step = (): void => {
        try {
          this.onRest();
          if (isOver() || !this.go(until)) return resolve();
        } catch (error) {
          return reject(error);
        }
        // Node runs all microtasks before it looks at immediates, and reports rejections nobody handled.
        setImmediate(step);
      };
      setImmediate(step);
    });
  }

  /** Keeps what is due up to and including the first appointment that is not quiet. False when time is over. */
  private go(until: number): boolean {
    for (;;) {
      const next = this.heap[0];
      if (!next || next.at > until) {
        if (until < Infinity) this.now = Math.max(this.now, until);
        return false;
      }
      this.take();
      if (next.cancelled) continue;
      this.now = Math.max(this.now, next.at);
      next.action();
      if (!next.quiet) return true;
    }
  }

  private put(time: number, action: () => void, quiet: boolean): Appointment {
    const entry: Entry = {
      at: Math.max(time, this.now),
      order: this.count++,
      action,
      quiet,
      cancelled: false,
    };
    const { heap } = this;
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(entry, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
    return entry;
  }

  private take(): void {
    const { heap } = this;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}
