import type { HoldEndListener } from '../lease/hold.js';
import type { Runtime } from '../util/runtime.js';
import type { Yielding } from './yielding.js';

/** The queue whose callers have the holds. */
interface QueueOfHolds {
  readonly wakeUps: number;
  lookAgain(): void;
  holdEnds(othersWaiting: boolean): void;
}

/**
 * Reports the end of a hold of a kind with several owners. Its caller is no contender any more, so the queue goes on
 * without it. But from time to time the contender has to let other processes go first.
 */
export class FormerContender implements HoldEndListener {
  constructor(
    private readonly queue: QueueOfHolds,
    private readonly yielding: Yielding,
    private readonly runtime: Runtime,
  ) {}

  handOff(): boolean {
    return false;
  }

  releaseSent(): void {
    this.yielding.releaseSent(this.runtime.now(), this.queue.wakeUps);
  }

  releaseOver(othersWaiting: boolean | undefined): void {
    if (othersWaiting !== undefined) {
      this.yielding.releaseReplied(this.runtime.now(), this.queue.wakeUps, othersWaiting);
      if (!othersWaiting) this.queue.lookAgain();
    }
    this.queue.holdEnds(othersWaiting ?? false);
  }

  leave(): void {
    this.queue.holdEnds(false);
  }
}
