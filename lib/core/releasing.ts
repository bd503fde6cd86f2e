import type { Claim, ReleaseReply } from './claim.js';
import type { CoreContext } from './core-context.js';
import { lostError, storeError } from './failures.js';
import { passedOn } from './hand-over.js';
import type { Hold } from './hold.js';
import type { LeasePart } from './lease.js';
import { StoreFailure } from './lock-store.js';

export type Ending = 'released' | 'lost';

const worst = (endings: readonly Ending[]): Ending => (endings.includes('lost') ? 'lost' : 'released');

/** Ends holds: by release, after a minimum time, or because they were lost. */
export class Releasing {
  /** Holds whose work is over but which stay for a while. */
  private readonly lingering = new Map<Hold, unknown>();

  constructor(private readonly core: CoreContext) {}

  /** How many holds outlast their work at the moment. */
  get lingeringCount(): number {
    return this.lingering.size;
  }

  /** Ends all parts of a lease whose section is over; see {@link endPart}. */
  endAll(parts: readonly LeasePart[], holdAtLeastMs: number): Promise<Ending> {
    if (parts.length === 1) return this.endPart(parts[0]!, holdAtLeastMs);
    return Promise.all(parts.map((part) => this.endPart(part, holdAtLeastMs))).then(worst);
  }

  /** Releases all parts of a lease, the others also when one fails; then rejects with the failure. */
  async releaseAll(parts: readonly LeasePart[]): Promise<Ending> {
    const endings = await Promise.allSettled(
      parts.map(async ({ hold, place }): Promise<Ending> => {
        if (!place) return this.release(hold, 'throw');
        place.leave();
        return hold.state === 'lost' ? 'lost' : 'released';
      }),
    );
    return worst(
      endings.map((ending) => {
        if (ending.status === 'rejected') throw ending.reason;
        return ending.value;
      }),
    );
  }

  /**
   * Ends a caller's part in a key. Never throws: a release that failed has been logged and is tried again.
   * `holdAtLeastMs`: how long after the grant the hold has to stay.
   */
  endPart(part: LeasePart, holdAtLeastMs: number): Promise<Ending> {
    const { hold, place } = part;
    if (holdAtLeastMs > 0) hold.keepUntil = Math.max(hold.keepUntil, hold.grantedAt + holdAtLeastMs);
    if (place) {
      this.core.keeper.checkExpiry(hold);
      place.leave();
      return Promise.resolve(hold.state === 'lost' ? 'lost' : 'released');
    }
    if (hold.keepUntil > 0 && hold.state === 'held' && hold.keepUntil > this.core.runtime.now()) {
      return Promise.resolve(this.linger(hold));
    }
    return this.release(hold, 'log');
  }

  /**
   * Releases a hold in the store. A failure is a `LockStoreError`, thrown or logged; either way the release is
   * tried again.
   */
  release(hold: Hold, onFailure: 'throw' | 'log'): Promise<Ending> {
    const { core } = this;
    core.keeper.checkExpiry(hold);
    if (hold.state === 'lost') {
      // A renewal that was never answered may have kept it in the store.
      if (hold.lossReason !== 'refused') core.settler.settle(hold.claim, undefined, hold.mayLastUntil);
      return Promise.resolve('lost');
    }
    if (hold.state === 'released') return Promise.resolve('released');
    const passed = hold.queue.passOn(() => this.successorOf(hold));
    hold.state = 'released';
    core.keeper.remove(hold);
    if (!passed) return this.send(hold, onFailure);
    this.tellReleased(hold);
    return Promise.resolve('released');
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

  /** What follows from a loss, whoever noticed it. */
  readonly whenLost = (hold: Hold): void => {
    const { core } = this;
    core.keeper.remove(hold);
    const heldMs = Math.round(core.runtime.now() - hold.grantedAt);
    const reason = hold.lossReason ?? 'refused';
    core.logger.warn(lostError(hold.key, reason, heldMs).message);
    core.events.emit('lost', () => ({ key: hold.key, heldMs, reason }));
    // The next caller of this process need not wait for work that lost its right.
    hold.queue.leave(false);
  };

  /** Forgets what lingers on a key: somebody has ended it by force. */
  forget(finalKey: string): void {
    for (const [hold, timer] of [...this.lingering]) {
      if (hold.claim.key !== finalKey) continue;
      this.core.runtime.clearTimer(timer);
      this.lingering.delete(hold);
      hold.queue.leave(false);
    }
  }

  /** Leaves what lingers to its lease. */
  stop(): void {
    for (const timer of this.lingering.values()) this.core.runtime.clearTimer(timer);
    this.lingering.clear();
  }

  private send(hold: Hold, onFailure: 'throw' | 'log'): Promise<Ending> {
    const { queue, claim } = hold;
    const hintsBefore = queue.hints;
    const startedAt = this.core.runtime.now();
    queue.asking();
    return this.asked(claim).then(
      (reply) => this.answered(hold, reply, hintsBefore),
      (failure: unknown) => this.failed(hold, failure, startedAt, onFailure),
    );
  }

  /** A store that throws at once is one that fails. */
  private asked(claim: Claim): Promise<ReleaseReply> {
    try {
      return Promise.resolve(this.core.store.release(claim));
    } catch (failure) {
      return Promise.reject(failure);
    }
  }

  private answered(hold: Hold, reply: ReleaseReply, hintsBefore: number): Ending {
    const { core } = this;
    hold.queue.asked(true);
    core.health.works();
    hold.queue.leave(reply.othersWaiting, hintsBefore);
    if (reply.wasHeld) {
      this.tellReleased(hold);
      return 'released';
    }
    hold.state = 'lost';
    hold.lossReason = 'refused';
    const heldMs = Math.round(core.runtime.now() - hold.grantedAt);
    core.logger.warn(lostError(hold.key, 'refused', heldMs).message);
    core.events.emit('lost', () => ({ key: hold.key, heldMs, reason: 'refused' }));
    return 'lost';
  }

  private failed(hold: Hold, failure: unknown, startedAt: number, onFailure: 'throw' | 'log'): Ending {
    const { core } = this;
    const { queue, claim } = hold;
    queue.asked(false);
    core.health.failed(failure);
    if (failure instanceof StoreFailure) core.settler.settle(claim, undefined, hold.mayLastUntil);
    queue.failed(failure, 'waiting for', 'due');
    queue.leave(false);
    const error = storeError(hold.key, failure, 'releasing', core.runtime.now() - startedAt);
    if (onFailure === 'throw') throw error;
    core.logger.warn(`${error.message} The release is tried again until the lease is over.`);
    return 'released';
  }

  /** Keeps the hold, without renewal, until its minimum time is over. */
  private linger(hold: Hold): Ending {
    const { core } = this;
    core.keeper.remove(hold);
    hold.state = 'released';
    const leftMs = Math.ceil(hold.keepUntil - core.runtime.now());
    if (hold.validUntil < hold.keepUntil) {
      void core.store
        .extendMany([{ ...hold.claim, leaseMs: leftMs }])
        .catch((failure) => core.health.failed(failure));
    }
    const end = (): void => {
      this.lingering.delete(hold);
      void this.send(hold, 'log');
    };
    this.lingering.set(hold, core.runtime.setTimer(end, leftMs, true));
    return 'released';
  }
}
