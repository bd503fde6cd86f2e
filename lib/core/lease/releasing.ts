import type { Claim, ReleaseReply } from '../seam/claim.js';
import type { CoreContext } from '../core-context.js';
import { lostError, storeError } from '../errors/error-messages.js';
import { passedOn } from '../acquire/turn.js';
import type { Hold } from './hold.js';
import type { LeasePart } from './lease-part.js';
import { StoreFailure } from '../seam/lock-store.js';
import { keepForMsOf } from './undo.js';

export type Ending = 'released' | 'lost';

const worst = (endings: readonly Ending[]): Ending => (endings.includes('lost') ? 'lost' : 'released');

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
    if (part.place) this.core.keeper.checkExpiry(part.hold);
    const ending = part.end();
    return part.place ? Promise.resolve(ending) : this.release(part.hold, onFailure);
  }

  /**
   * Releases a hold in the store. One that has to stay for a while is left there with just that time. A failure is a
   * `LockStoreError`, thrown or logged; either way the release is tried again.
   */
  release(hold: Hold, onFailure: 'throw' | 'log'): Promise<Ending> {
    const { core } = this;
    core.keeper.checkExpiry(hold);
    if (hold.state === 'lost') {
      // A renewal that was never answered may have kept it in the store.
      if (hold.lossReason !== 'refused')
        core.settler.settle(hold.claim, undefined, hold.mayLastUntil, hold.keepUntil);
      return Promise.resolve('lost');
    }
    if (hold.state === 'released') return Promise.resolve('released');
    const passed = hold.queue.passOn(hold.watchdogMs, () => this.successorOf(hold));
    hold.state = 'released';
    core.keeper.remove(hold);
    if (!passed) return this.send(hold, onFailure);
    this.tellReleased(hold);
    return Promise.resolve('released');
  }

  /** Gives a hold back whose caller has gone before it came: nobody is told of it. */
  giveBack(hold: Hold): void {
    const { keeper, settler } = this.core;
    if (hold.state === 'held') {
      const passed = hold.queue.passOn(hold.watchdogMs, () => this.successorOf(hold));
      hold.state = 'released';
      keeper.remove(hold);
      if (passed) return;
      hold.queue.leave(false);
    }
    settler.settle(hold.claim, undefined, hold.mayLastUntil);
  }

  /** The hold for the next caller. It is kept alive on its way, and can be lost there. */
  private successorOf(hold: Hold): Hold | undefined {
    const next = passedOn(hold, this.core.runtime.now());
    if (next) this.core.keeper.add(next);
    return next;
  }

  private tellReleased(hold: Hold): void {
    const { events, runtime } = this.core;
    events.emit('released', () => ({ key: hold.key, heldMs: Math.round(runtime.now() - hold.grantedAt) }));
  }

  private tellLost(hold: Hold): void {
    const { events, logger, runtime } = this.core;
    const heldMs = Math.round(runtime.now() - hold.grantedAt);
    const reason = hold.lossReason ?? 'refused';
    logger.warn(lostError(hold.key, reason, heldMs).message);
    events.emit('lost', () => ({ key: hold.key, heldMs, reason }));
  }

  /** What follows from a loss, whoever noticed it. */
  readonly whenLost = (hold: Hold): void => {
    this.core.keeper.remove(hold);
    this.tellLost(hold);
    // The next caller of this process need not wait for work that lost its right.
    hold.queue.leave(false);
  };

  private send(hold: Hold, onFailure: 'throw' | 'log'): Promise<Ending> {
    const { queue, claim } = hold;
    const hintsBefore = queue.hints;
    const startedAt = this.core.runtime.now();
    const keepForMs = keepForMsOf(hold.keepUntil, startedAt);
    queue.asking();
    return this.asked(claim, keepForMs).then(
      (reply) => this.answered(hold, reply, keepForMs === undefined, hintsBefore),
      (failure: unknown) => this.failed(hold, failure, startedAt, onFailure),
    );
  }

  /** A store that throws at once is one that fails. */
  private asked(claim: Claim, keepForMs: number | undefined): Promise<ReleaseReply> {
    try {
      return Promise.resolve(
        this.core.store.release(claim, keepForMs === undefined ? undefined : { keepForMs }),
      );
    } catch (failure) {
      return Promise.reject(failure);
    }
  }

  private answered(hold: Hold, reply: ReleaseReply, isFree: boolean, hintsBefore: number): Ending {
    const { core } = this;
    hold.queue.asked(true);
    core.health.works();
    // Nobody can take what stays for a while, so nobody has to be let go first.
    hold.queue.leave(reply.othersWaiting && isFree, hintsBefore);
    if (reply.wasHeld) {
      this.tellReleased(hold);
      return 'released';
    }
    hold.state = 'lost';
    hold.lossReason = 'refused';
    this.tellLost(hold);
    return 'lost';
  }

  private failed(hold: Hold, failure: unknown, startedAt: number, onFailure: 'throw' | 'log'): Ending {
    const { core } = this;
    const { queue, claim } = hold;
    queue.asked(false);
    core.health.failed(failure);
    if (failure instanceof StoreFailure)
      core.settler.settle(claim, undefined, hold.mayLastUntil, hold.keepUntil);
    queue.failed(failure, 'waiting for', 'due');
    queue.leave(false);
    const error = storeError(hold.key, failure, 'releasing', core.runtime.now() - startedAt);
    if (onFailure === 'throw') throw error;
    core.logger.warn(`${error.message} The release is tried again until the lease is over.`);
    return 'released';
  }
}
