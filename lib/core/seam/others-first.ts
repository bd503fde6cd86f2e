import { CompactingMap } from '../util/compacting.js';
import type { Runtime } from '../util/runtime.js';
import type { Claim } from './claim.js';
import type { ReleaseReply } from './reply.js';

/**
 * Time after a release in which this process leaves the key to notified waiters elsewhere, in ms from the reply. By then
 * their requests are on the way.
 */
const OTHERS_FIRST_MS = 3;

/**
 * Lets waiters of other processes go first, for a store without a wait queue. An acquire right behind a release of its
 * own process would always be the first, so it waits for the reply, and longer if that says that others wait.
 *
 * The core cannot know before the reply whether the store has a wait queue for the key. Such a store gets the next
 * acquire right behind the release.
 */
export class OthersFirst {
  /** Keys that this process has just released, until other processes have had their chance. */
  private readonly released = new CompactingMap<string, Promise<void>>();

  /** Sends an acquire: at once, or after the others if its caller waits. */
  acquire<T>({ finalKey, waits }: Claim, send: () => Promise<T>): Promise<T> {
    const othersFirst = waits ? this.released.get(finalKey) : undefined;
    return othersFirst ? othersFirst.then(send) : send();
  }

  /** Notes a release that has been sent, and returns its reply. */
  release(finalKey: string, reply: Promise<ReleaseReply>, runtime: Runtime): Promise<ReleaseReply> {
    const pause = (): Promise<void> =>
      new Promise((resolve) => void runtime.setTimer(resolve, OTHERS_FIRST_MS, true));
    const othersFirst = reply
      .then(
        ({ othersWaiting }) => (othersWaiting ? pause() : undefined),
        () => undefined,
      )
      .then(() => {
        if (this.released.get(finalKey) === othersFirst) this.released.delete(finalKey);
      });
    this.released.set(finalKey, othersFirst);
    return reply;
  }
}
