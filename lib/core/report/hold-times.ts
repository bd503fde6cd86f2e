import type { LockNotAcquiredError } from '../errors/lock.errors.js';

/** Number of the last holds that a median is of. */
const SAMPLES = 15;

/** Maximum number of labels. The oldest is forgotten for a new one. */
const MAX_LABELS = 100;

/** Labels of calls without a label: they say nothing about the work, so its times have nothing in common. */
const UNLABELLED: ReadonlySet<string> = new Set([
  ...['withLock', 'tryWithLock', 'withLocks', 'withPermit', 'acquire', 'tryAcquire'],
  ...['permits().acquire', 'permits().tryAcquire'],
]);

/** Last holds of one label. */
interface Samples {
  /** In ms; the oldest is overwritten at `next`. */
  readonly times: number[];
  next: number;
  /** Median of `times`; undefined until it is needed. */
  median: number | undefined;
}

/** How long the calls of each label held their locks. Its size is fixed, and an ended hold costs one write. */
export class HoldTimes {
  private readonly samples = new Map<string, Samples>();

  /** @param maxWaiters number of callers before a caller that a full queue rejects */
  constructor(private readonly maxWaiters: number) {}

  add(label: string, heldMs: number): void {
    const known = this.samples.get(label);
    if (known) {
      known.times[known.next] = heldMs;
      known.next = (known.next + 1) % SAMPLES;
      known.median = undefined;
    } else if (!UNLABELLED.has(label)) {
      for (const oldest of this.samples.keys()) {
        if (this.samples.size < MAX_LABELS) break;
        this.samples.delete(oldest);
      }
      this.samples.set(label, { times: [heldMs], next: 1, median: heldMs });
    }
  }

  /**
   * Returns the median hold time, times the callers before the caller: the holder and the waiters. Undefined if no hold
   * of the label has ended here.
   *
   * @param permits number of callers that hold at once
   */
  retryAfterMs(
    { code, label = '', waitersAhead = 0 }: LockNotAcquiredError,
    permits = 1,
  ): number | undefined {
    const known = this.samples.get(label);
    if (!known) return undefined;
    known.median ??= [...known.times].sort((a, b) => a - b)[known.times.length >> 1]!;
    const ahead = code === 'LOCK_QUEUE_FULL' ? this.maxWaiters : waitersAhead;
    return Math.ceil(known.median * Math.ceil((1 + ahead) / permits));
  }
}
