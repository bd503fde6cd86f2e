import { unbound } from '../../../core/runtime.js';

/** A timer that is this late, in ms, tells that the event loop stood still. */
const STOOD_STILL_MS = 50;

/** A command under way. The connection sets `done` when it is answered or given up. */
export interface Unanswered {
  done: boolean;
}

interface Entry extends Unanswered {
  dueAt: number;
  spared: boolean;
  readonly onOverdue: () => void;
  next: Entry | undefined;
}

/**
 * Watches over commands that all have the same time-out. They fall due in the order in which they were sent, and
 * are mostly answered in that order too, so one timer and a chain are enough: what is done leaves at the front.
 */
export class CommandDeadlines {
  private first: Entry | undefined;
  private last: Entry | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly timeoutMs: number) {}

  /** Whether every command so far is done. */
  get idle(): boolean {
    this.dropDone();
    return this.first === undefined;
  }

  /** Calls `onOverdue` when the command is not done by its deadline. */
  add(onOverdue: () => void): Unanswered {
    const entry: Entry = {
      dueAt: performance.now() + this.timeoutMs,
      done: false,
      spared: false,
      onOverdue,
      next: undefined,
    };
    if (this.last) this.last.next = entry;
    this.last = entry;
    this.first ??= entry;
    this.dropDone();
    if (this.timer === undefined) this.arm(this.timeoutMs);
    return entry;
  }

  private dropDone(): void {
    while (this.first?.done) this.shift();
  }

  private shift(): Entry {
    const entry = this.first!;
    this.first = entry.next;
    if (!this.first) this.last = undefined;
    // Unlinked: an old entry that pointed to a young one would keep the whole chain from the quick collections.
    entry.next = undefined;
    return entry;
  }

  private arm(ms: number): void {
    const plannedAt = performance.now() + ms;
    // A reply that waits behind a blocked event loop has come in time: let the poll phase deliver it first.
    const look = (): void => void setImmediate(() => this.sweep(performance.now() - plannedAt));
    this.timer = unbound(() => setTimeout(look, Math.max(1, ms)).unref());
  }

  private sweep(lateMs: number): void {
    this.timer = undefined;
    const now = performance.now();
    const stoodStill = lateMs > STOOD_STILL_MS;
    const overdue: Entry[] = [];
    for (this.dropDone(); this.first && this.first.dueAt <= now; this.dropDone()) {
      if (stoodStill && !this.first.spared) break;
      overdue.push(this.shift());
    }
    if (stoodStill) this.spare(now, Math.min(lateMs, this.timeoutMs));
    if (this.first) this.arm(this.first.dueAt - now);
    for (const entry of overdue) if (!entry.done) entry.onOverdue();
  }

  /** What was to be sent may have left only now: it gets as long again as the loop stood still, but only once. */
  private spare(now: number, ms: number): void {
    for (let entry = this.first; entry && entry.dueAt <= now; entry = entry.next) {
      entry.spared = true;
      entry.dueAt = now + ms;
    }
  }
}
