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
 * Reports the end of a hold of a kind with several owners. Its caller is no contender any more, so the queue goes on
 * without it. But from time to time the contender has to let other processes go first.
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
