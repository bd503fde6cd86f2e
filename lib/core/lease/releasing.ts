import type { CoreContext } from '../core-context.js';
import { lostError, storeError } from '../errors/error-messages.js';
import type { ReleaseReply } from '../seam/reply.js';
import type { Hold } from './hold.js';
import type { LeasePart } from './lease-part.js';
import type { Orphan } from './undo.js';

export type Ending = 'released' | 'lost';

const worst = (endings: readonly Ending[]): Ending => (endings.includes('lost') ? 'lost' : 'released');

/** A hold that its holder has given up, and that is still in the store. */
const orphanOf = (hold: Hold): Orphan => ({
  claim: hold.claim,
  until: hold.mayLastUntil,
  keepForMs: (now) => hold.keepForMs(now),
});

/** Ends holds: by release, or because they were lost. */
export class Releasing {
  constructor(private readonly core: CoreContext) {}

  /** Ends all parts of a lease whose section is over; see {@link endPart}. */
  endAll(parts: readonly LeasePart[]): Promise<Ending> {
    if (parts.length === 1) return this.endPart(parts[0]!);
    return Promise.all(parts.map((part) => this.endPart(part))).then(worst);
  }

  /** Releases all parts of a lease, the others also when one fails; then rejects with the failure. */
  async releaseAll(parts: readonly LeasePart[]): Promise<Ending> {
    const endings = await Promise.allSettled(parts.map((part) => this.end(part, 'throw')));
    return worst(
      endings.map((ending) => {
        if (ending.status === 'rejected') throw ending.reason;
        return ending.value;
      }),
    );
  }

  /** Ends a caller's part in a key. Never throws: a release that failed has been logged and is tried again. */
  endPart(part: LeasePart): Promise<Ending> {
    return this.end(part, 'log');
  }

  private end(part: LeasePart, onFailure: 'throw' | 'log'): Promise<Ending> {
    if (part.entry) this.core.keeper.checkExpiry(part.hold);
    const ending = part.end();
    if (part.entry) return Promise.resolve(ending);
    this.core.keeper.checkExpiry(part.hold);
    if (!part.leavesToOthers()) return this.release(part.hold, onFailure);
    if (part.state === 'released') this.tellReleased(part.hold);
    return Promise.resolve(part.state === 'lost' ? 'lost' : 'released');
  }

  /**
   * Releases a hold in the store. One that has to stay for a while is left there with just that time. A failure is a
   * `LockStoreError`, thrown or logged; either way a store that failed is asked again.
   */
  private release(hold: Hold, onFailure: 'throw' | 'log'): Promise<Ending> {
    const { core } = this;
    if (hold.state === 'lost') {
      // A renewal that was never answered may have kept it in the store.
      if (hold.lossReason !== 'refused') core.undo.begin(orphanOf(hold));
      return Promise.resolve('lost');
    }
    if (hold.state === 'released') return Promise.resolve('released');
    const passed = hold.head.passOn(hold);
    hold.release();
    core.keeper.remove(hold);
    if (!passed) return this.send(hold, onFailure);
    this.tellReleased(hold);
    return Promise.resolve('released');
  }

  /**
   * Gives a hold back whose caller has gone before it came: to the next caller of this process, or to the store. False
   * when other leases have it still.
   */
  giveBack(hold: Hold): boolean {
    const { core } = this;
    if (hold.leaves()) return false;
    if (hold.state === 'held') {
      const passed = hold.head.passOn(hold);
      hold.release();
      core.keeper.remove(hold);
      if (passed) return true;
      hold.head.leave();
    }
    core.undo.begin(orphanOf(hold));
    return true;
  }

  private tellReleased(hold: Hold): void {
    const { events, runtime } = this.core;
    events.emit('released', () => ({ key: hold.key, heldMs: Math.round(runtime.now() - hold.grantedAt) }));
  }

  private tellLost(hold: Hold): void {
    const { events, logger, runtime } = this.core;
    const heldMs = Math.round(runtime.now() - hold.grantedAt);
    const reason = hold.lossReason ?? 'refused';
    logger.warn(lostError(hold.key, hold.claim, reason, heldMs).message);
    for (let lease = 0; lease < Math.max(1, hold.leases); lease += 1) {
      events.emit('lost', () => ({ key: hold.key, heldMs, reason }));
    }
  }

  /** What follows from a loss that is noticed before the release. */
  readonly whenLost = (hold: Hold): void => {
    this.core.keeper.remove(hold);
    this.tellLost(hold);
    // The next caller of this process need not wait for work that lost its right.
    hold.head.leave();
  };

  private send(hold: Hold, onFailure: 'throw' | 'log'): Promise<Ending> {
    const { head, claim } = hold;
    const { requests, runtime } = this.core;
    const startedAt = runtime.now();
    const keepForMs = hold.keepForMs(startedAt);
    const answer = requests.release(claim, keepForMs === undefined ? undefined : { keepForMs });
    head.releaseSent();
    return answer.then(
      (reply) => this.answered(hold, reply, keepForMs === undefined),
      (failure: unknown) => this.failed(hold, failure, startedAt, onFailure),
    );
  }

  private answered(hold: Hold, reply: ReleaseReply, isFree: boolean): Ending {
    this.core.requests.answered();
    // A hold that stays for a while cannot be taken by others, so this process need not yield.
    hold.head.releaseOver(reply.othersWaiting && isFree);
    if (reply.wasHeld) {
      this.tellReleased(hold);
      return 'released';
    }
    hold.wasGone(reply.entered ? 'entered' : 'refused');
    this.tellLost(hold);
    return 'lost';
  }

  private failed(hold: Hold, failure: unknown, startedAt: number, onFailure: 'throw' | 'log'): Ending {
    const { core } = this;
    core.requests.releaseFailed(orphanOf(hold), failure);
    hold.head.releaseOver(undefined);
    const error = storeError(hold.key, failure, 'releasing', core.runtime.now() - startedAt);
    if (onFailure === 'throw') throw error;
    core.logger.warn(`${error.message} The release is tried again until the lease is over.`);
    return 'released';
  }
}
