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

  passOn(): boolean {
    return false;
  }

  releaseSent(): void {
    this.yielding.releaseSent(this.runtime.now(), this.queue.hints);
  }

  releaseOver(othersWaiting: boolean | undefined): void {
    if (othersWaiting !== undefined) {
      this.yielding.releaseAnswered(this.runtime.now(), this.queue.hints, othersWaiting);
      if (!othersWaiting) this.queue.wakeHead();
    }
    this.queue.holdEnds(othersWaiting ?? false);
  }

  leave(): void {
    this.queue.holdEnds(false);
  }
}
