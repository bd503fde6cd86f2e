import type { Runtime } from '../../core/util/runtime.js';

/** Delay of a timer, in ms, above which the event loop counts as blocked. */
const STOOD_STILL_MS = 50;

/** A command under way. The connection sets `done` when the command has a reply or is given up. */
export interface PendingCommand {
  done: boolean;
  readonly sentAt: number;
}

interface Entry extends PendingCommand {
  dueAt: number;
  spared: boolean;
  readonly onOverdue: () => void;
  next: Entry | undefined;
}

/**
 * Times out commands that all have the same time-out. Commands fall due in the order in which they were sent, and
 * mostly get their replies in that order too. So one timer and a linked list are enough: finished commands leave at the
 * front.
 */
export class CommandDeadlines {
  private first: Entry | undefined;
  private last: Entry | undefined;
  private isArmed = false;

  constructor(
    private readonly timeoutMs: number,
    readonly runtime: Runtime,
  ) {}

  /** Whether every command so far is done. */
  get idle(): boolean {
    this.dropDone();
    return this.first === undefined;
  }

  /** For how long the oldest command has waited for its reply, in ms. */
  get silentForMs(): number {
    this.dropDone();
    return this.first ? this.runtime.now() - this.first.sentAt : 0;
  }

  /** Calls `onOverdue` when the command is not done by its deadline. */
  add(onOverdue: () => void): PendingCommand {
    const sentAt = this.runtime.now();
    const entry: Entry = {
      sentAt,
      dueAt: sentAt + this.timeoutMs,
      done: false,
      spared: false,
      onOverdue,
      next: undefined,
    };
    if (this.last) this.last.next = entry;
    this.last = entry;
    this.first ??= entry;
    this.dropDone();
    if (!this.isArmed) this.arm(this.timeoutMs);
    return entry;
  }

  private dropDone(): void {
    while (this.first?.done) this.shift();
  }

  private shift(): Entry {
    const entry = this.first!;
    this.first = entry.next;
    if (!this.first) this.last = undefined;
    // Unlink the entry: an old one that points to a young one would keep the whole list alive in minor garbage
    // collections.
    entry.next = undefined;
    return entry;
  }

  private arm(ms: number): void {
    const { runtime } = this;
    this.isArmed = true;
    const plannedAt = runtime.now() + ms;
    // A reply that waits behind a blocked event loop is in time: let the poll phase deliver it first.
    const look = (): void => runtime.soon(() => this.sweep(runtime.now() - plannedAt));
    runtime.setTimer(look, Math.max(1, ms), true);
  }

  private sweep(lateMs: number): void {
    this.isArmed = false;
    const now = this.runtime.now();
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

  /** Extends overdue deadlines once, by the time that the loop was blocked: the bytes may have left only now. */
  private spare(now: number, ms: number): void {
    for (let entry = this.first; entry && entry.dueAt <= now; entry = entry.next) {
      entry.spared = true;
      entry.dueAt = now + ms;
    }
  }
}
