import { unbound } from '../../core/runtime.js';

interface InFlight {
  readonly dueAt: number;
  done: boolean;
  readonly onOverdue: () => void;
}

/**
 * Watches over commands that all have the same time-out. They fall due in the order in which they were sent, so
 * one timer and a queue are enough, and a command that is answered costs next to nothing.
 */
export class CommandDeadlines {
  private queue: InFlight[] = [];
  private head = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly timeoutMs: number) {}

  /** Calls `onOverdue` when the command is not done by its deadline. Set `done` on what is returned. */
  add(onOverdue: () => void): { done: boolean } {
    const command = { dueAt: performance.now() + this.timeoutMs, done: false, onOverdue };
    this.queue.push(command);
    if (this.timer === undefined) this.arm(this.timeoutMs);
    return command;
  }

  private arm(ms: number): void {
    // A reply that waits behind a blocked event loop has come in time: let the poll phase deliver it first.
    this.timer = unbound(() => setTimeout(() => setImmediate(() => this.sweep()), Math.max(1, ms)).unref());
  }

  private sweep(): void {
    this.timer = undefined;
    const now = performance.now();
    const overdue: InFlight[] = [];
    while (this.head < this.queue.length) {
      const command = this.queue[this.head]!;
      if (!command.done && command.dueAt > now) break;
      if (!command.done) overdue.push(command);
      this.head++;
    }
    this.queue = this.queue.slice(this.head);
    this.head = 0;
    const next = this.queue[0];
    if (next) this.arm(next.dueAt - now);
    for (const command of overdue) if (!command.done) command.onOverdue();
  }
}
