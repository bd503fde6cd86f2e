import type { CoreContext } from '../context/core-context.js';
import { lostError, storeError } from '../errors/error-messages.js';
import { formatValue } from '../util/describe.js';
import { withLabel } from '../errors/lock.errors.js';
import type { ReleaseReply } from '../seam/reply.js';
import { StoreFailure } from '../seam/store-failure.js';
import type { Hold } from './hold.js';
import type { LeasePart } from './lease-part.js';
import { cutToWanted } from './shortening.js';
import type { Orphan } from './undo.js';

/** What the end of a hold uses of its service. */
type Core = Pick<
  CoreContext,
  'events' | 'holdTimes' | 'keeper' | 'logger' | 'requests' | 'runtime' | 'shown' | 'telemetry' | 'undo'
>;

export type Ending = 'released' | 'lost';

const worst = (endings: readonly Ending[]): Ending => (endings.includes('lost') ? 'lost' : 'released');

/** Returns a hold that its holder has given up, and that is still in the store. */
const orphanOf = (hold: Hold): Orphan => ({
  claim: hold.claim,
  until: hold.inStore.mayLastUntil,
  keepForMs: (now) => hold.keepForMs(now),
});

/** Ends holds, by release or after a loss. */
export class Releasing {
  constructor(private readonly core: Core) {}

  /** Ends all parts of a lease whose section has ended; see {@link endPart}. */
  endAll(parts: readonly LeasePart[]): Promise<Ending> {
    if (parts.length === 1) return this.endPart(parts[0]!);
    return Promise.all(parts.map((part) => this.endPart(part))).then(worst);
  }

  /** Releases all parts of a lease, also when one fails; then rejects with the failure. */
  async releaseAll(parts: readonly LeasePart[]): Promise<Ending> {
    const endings = await Promise.allSettled(parts.map((part) => this.end(part, 'throw')));
    return worst(
      endings.map((ending) => {
        if (ending.status === 'rejected') throw ending.reason;
        return ending.value;
      }),
    );
  }

  /** Ends a caller's part of a key. Never throws: a failed release is logged and retried. */
  endPart(part: LeasePart): Promise<Ending> {
    return this.end(part, 'log');
  }

  private end(part: LeasePart, onFailure: 'throw' | 'log'): Promise<Ending> {
    if (part.outer) this.core.keeper.checkExpiry(part.hold);
    const ending = part.end();
    if (part.outer) return this.left(part, ending);
    this.core.keeper.checkExpiry(part.hold);
    if (!part.leavesToOthers()) return this.release(part, onFailure);
    if (part.state === 'released') this.reportReleased(part, true);
    return this.left(part, part.state === 'lost' ? 'lost' : 'released');
  }

  /** Handles a part that ended while others still have its hold: shortens the hold to what they requested. */
  private left(part: LeasePart, ending: Ending): Promise<Ending> {
    const { hold } = part;
    if (!hold.dropsDemand(part)) return Promise.resolve(ending);
    return cutToWanted(this.core, hold).then(() => ending);
  }

  /**
   * Releases a hold in the store, or sets its time to live if it has to stay for a while. A failure is a
   * `LockStoreError`, thrown or logged; in both cases the release is retried.
   */
  private release(part: LeasePart, onFailure: 'throw' | 'log'): Promise<Ending> {
    const { core } = this;
    const { hold } = part;
    if (hold.state === 'lost') {
      // A renewal with an unknown outcome may have kept it in the store. An overdue hold is still there.
      const mayBeThere = hold.session ? hold.lossReason === 'overdue' : hold.lossReason !== 'refused';
      if (mayBeThere) core.undo.begin(orphanOf(hold));
      return Promise.resolve('lost');
    }
    if (hold.state === 'released') return Promise.resolve('released');
    const passed = hold.endListener.handOff(hold);
    hold.release();
    core.keeper.remove(hold);
    if (!passed) return this.send(part, onFailure);
    this.reportReleased(part, true);
    return Promise.resolve('released');
  }

  /**
   * Ends a hold whose caller left before it came: hands it off to the next caller of this process, or releases it.
   * Returns false when other leases still have it.
   */
  releaseUnused(hold: Hold): boolean {
    const { core } = this;
    if (hold.dropLease()) return false;
    if (hold.state === 'held') {
      const passed = hold.endListener.handOff(hold);
      hold.release();
      core.keeper.remove(hold);
      if (passed) return true;
      hold.endListener.leave();
    }
    core.undo.begin(orphanOf(hold));
    return true;
  }

  /**
   * Emits `acquired` for each key that a lease has acquired. A key that was lost on its way to the caller gets `lost`
   * at once.
   */
  acquired(parts: readonly LeasePart[], startedAt: number): void {
    const { events, runtime, shown, telemetry } = this.core;
    for (const part of parts) {
      const { key, hold, outer, label } = part;
      if (outer) continue;
      hold.reported.add(part);
      events.emit('acquired', () => ({
        ...{ key: shown(key), kind: hold.claim.kind, label },
        waitedMs: Math.round(runtime.now() - startedAt),
        fencingToken: hold.token,
      }));
      telemetry.holdBegan(hold, part);
      if (hold.state === 'lost') this.reportLost(hold);
    }
  }

  private reportReleased(part: LeasePart, confirmed: boolean): void {
    const { hold, label } = part;
    if (!hold.reported.end(part)) return;
    const { events, shown } = this.core;
    const heldMs = this.heldMs(hold);
    this.core.holdTimes.add(label, Math.max(heldMs, Math.round(hold.keepUntil - hold.grantedAt)));
    events.emit('released', () => ({
      ...{ key: shown(hold.key), kind: hold.claim.kind, label },
      ...{ heldMs, confirmed },
    }));
    this.core.telemetry.holdEnded(hold, part, heldMs, undefined);
  }

  private announceLost(hold: Hold): void {
    const { logger, shown } = this.core;
    logger.warn(
      lostError(shown(hold.key), hold.claim, hold.lossReason ?? 'refused', this.heldMs(hold)).message,
    );
    this.reportLost(hold);
  }

  /** Emits `lost` for each lease with an `acquired` event. Other leases never had a caller. */
  private reportLost(hold: Hold): void {
    const { key, claim, lossReason: reason = 'refused' } = hold;
    const heldMs = this.heldMs(hold);
    const { events, shown, telemetry } = this.core;
    for (const lease of hold.reported.endAll()) {
      const { label } = lease;
      events.emit('lost', () => ({ key: shown(key), kind: claim.kind, label, heldMs, reason }));
      telemetry.holdEnded(hold, lease, heldMs, reason);
    }
  }

  private heldMs({ grantedAt }: Hold): number {
    return Math.round(this.core.runtime.now() - grantedAt);
  }

  /** Handles a loss that is noticed before the release. */
  readonly whenLost = (hold: Hold): void => {
    this.core.keeper.remove(hold);
    // Over a session nothing else ends it in the store.
    const end = (): void => this.core.undo.begin(orphanOf(hold));
    const { session, lossReason, watchdogMs } = hold;
    if (session && lossReason === 'expired') end();
    // Its work has as long as the rest of a lease to stop.
    if (session && lossReason === 'overdue') this.core.runtime.setTimer(end, watchdogMs!, true);
    this.announceLost(hold);
    // The next caller of this process need not wait for work that has lost its lock.
    hold.endListener.leave();
  };

  private send(part: LeasePart, onFailure: 'throw' | 'log'): Promise<Ending> {
    const { hold } = part;
    const { endListener, claim } = hold;
    const { requests, runtime } = this.core;
    const startedAt = runtime.now();
    const keepForMs = hold.keepForMs(startedAt);
    const reply = requests.release(claim, { keepForMs, until: hold.inStore.mayLastUntil });
    endListener.releaseSent();
    return reply.then(
      (reply: ReleaseReply | undefined) => {
        if (typeof reply?.wasHeld === 'boolean') return this.replied(part, reply, keepForMs === undefined);
        const nonsense = new StoreFailure(`the store replied ${formatValue(reply)} to a release`, 'unknown');
        return this.failed(part, nonsense, startedAt, onFailure);
      },
      (failure: unknown) => this.failed(part, failure, startedAt, onFailure),
    );
  }

  private replied(part: LeasePart, reply: ReleaseReply, isFree: boolean): Ending {
    const { hold } = part;
    this.core.requests.replied();
    // Other processes cannot acquire a hold that stays for a while, so this process need not yield.
    hold.endListener.releaseOver(reply.othersWaiting && isFree);
    if (reply.wasHeld) {
      this.reportReleased(part, true);
      return 'released';
    }
    hold.wasGone(reply.intruder ? 'entered' : 'refused');
    this.announceLost(hold);
    return 'lost';
  }

  private failed(part: LeasePart, failure: unknown, startedAt: number, onFailure: 'throw' | 'log'): Ending {
    const { core } = this;
    const { hold } = part;
    core.requests.releaseFailed(orphanOf(hold), failure);
    hold.endListener.releaseOver(undefined);
    this.reportReleased(part, false);
    const afterMs = core.runtime.now() - startedAt;
    const error = withLabel(storeError(core.shown(hold.key), failure, 'releasing', afterMs), part.label);
    if (onFailure === 'throw') throw error;
    core.logger.warn(`${error.message} The release is tried again until the lock has ended.`);
    return 'released';
  }
}
