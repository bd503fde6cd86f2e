import type { Head } from '../lease/hold.js';
import type { Runtime } from '../runtime.js';
import type { Yielding } from './yielding.js';

/** The queue whose callers have the holds. */
interface QueueOfHolds {
  readonly hints: number;
  wakeHead(): void;
  holdEnds(othersWaiting: boolean): void;
}

/**
 * What a hold tells of its end when its kind has several owners: its caller left the head of the queue when it had the
 * hold, so the queue goes on by itself. But the head is to let other processes go first from time to time.
 */
export class NotTheHead implements Head {
  constructor(
    private readonly queue: QueueOfHolds,
    private readonly yielding: Yielding,
    private readonly runtime: Runtime,
  ) {}

  get hints(): number {
    return this.queue.hints;
  }

  requestSent(): void {
    this.yielding.releaseSent(this.runtime.now(), this.hints);
  }

  requestOver(): void {}

  failed(): void {}

  passOn(): boolean {
    return false;
  }

  leave(othersWaiting: boolean, hintsBefore?: number): void {
    // Only an answered release tells whether others wait.
    if (hintsBefore !== undefined) {
      this.yielding.releaseAnswered(this.runtime.now(), this.hints, othersWaiting);
      if (!othersWaiting) this.queue.wakeHead();
    }
    this.queue.holdEnds(othersWaiting);
  }
}
