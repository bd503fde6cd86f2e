import { onAbort } from '../util/abort-listeners.js';
import { CompactingMap } from '../util/compacting.js';
import type { LossReason } from '../report/lock-events.js';
import type { Runtime } from '../util/runtime.js';
import type { Session } from '../seam/lease-model.js';
import type { ExtendReply } from '../seam/reply.js';
import type { StoreRequests } from '../context/store-requests.js';
import { StoreFailure } from '../seam/store-failure.js';
import type { Hold, HoldState } from './hold.js';
import { renewalOf } from './renewal.js';

/** Returns how often holds with this lease are renewed, in ms. */
const periodOf = (watchdogMs: number): number => Math.floor(watchdogMs / 3);

/** Returns the pause before the retry of a failed renewal, in ms. */
const retryMsOf = (watchdogMs: number): number => Math.max(50, Math.min(1_000, Math.floor(watchdogMs / 10)));

/** Longest pause before a renewal is repeated for which the store asks for another try, in ms. */
const BLOCKED_RETRY_MS = 200;

/** Lease to request for a fixed lease: an extension that changes nothing, because more time is left. */
const ONLY_LOOKING_MS = 1;

/** Returns the lease to request at a renewal. A hold with a fixed lease is only checked. */
const requestedMsOf = ({ watchdogMs }: Hold): number => watchdogMs ?? ONLY_LOOKING_MS;

/** What else happens to holds. */
export interface KeeperHost {
  /** The process has a hold. */
  readonly added: () => void;
  /** Length of a slow hold, in ms; `Infinity`: no hold is slow. */
  readonly slowHoldMs: number;
  /** A hold has lasted for so long. Called once for each hold. */
  readonly report: (hold: Hold, heldMs: number) => void;
}

/**
 * Renews all holds of a process, with one timer, and notices the end of every lease. Every third of their lease it
 * renews the watched holds of one lease length in one batch.
 *
 * A failed renewal has an unknown outcome, so it is retried until the hold's time is over. A lost hold in the reply, or
 * the end of the time, is a loss. A lost hold is never reacquired silently.
 */
export class LeaseKeeper {
  /** Holds, each with the function that removes the listener for a loss that the store itself detects. */
  private readonly holds = new CompactingMap<Hold, (() => void) | undefined>();
  /** Time of the next renewal, for each lease length in ms. */
  private readonly rounds = new Map<number, number>();
  /** Holds that may have ended since the request in progress was sent. */
  private readonly mayHaveEnded = new Set<Hold>();
  /** Sessions whose end is listened to. */
  private readonly sessions = new WeakSet<Session>();
  private timer: unknown;
  private timerDueAt = Infinity;

  constructor(
    private readonly requests: StoreRequests,
    private readonly runtime: Runtime,
    private readonly host: KeeperHost,
  ) {}

  get all(): readonly Hold[] {
    return [...this.holds.keys()];
  }

  get size(): number {
    return this.holds.size;
  }

  add(hold: Hold): void {
    const { lost, session } = hold;
    if (session) this.endWith(session);
    this.holds.set(hold, lost && onAbort(lost, () => this.lose(hold, 'refused')));
    this.schedule(hold);
    this.host.added();
  }

  /** Loses all holds of a session when it is over. */
  private endWith(session: Session): void {
    if (this.sessions.has(session)) return;
    this.sessions.add(session);
    onAbort(session.over, () => {
      for (const hold of this.all) if (hold.session === session) this.lose(hold, 'refused');
    });
  }

  /** Sets the timer earlier if the hold needs it. */
  schedule(hold: Hold): void {
    const { renewedLeaseMs, validUntil, requestAgainAt } = hold;
    const roundAt = renewedLeaseMs === undefined ? Infinity : this.roundOf(renewedLeaseMs);
    const dueAt = Math.min(roundAt, validUntil, requestAgainAt, this.slowAt(hold));
    if (dueAt < this.timerDueAt) this.arm(dueAt);
  }

  /** Removes a hold. The timer stays, and finds nothing to do: resetting it for each short lock would cost more. */
  remove(hold: Hold): void {
    this.holds.get(hold)?.();
    this.holds.delete(hold);
    this.mayHaveEnded.delete(hold);
  }

  /** Checks the holds of a key, or all, in the store now, instead of at the next renewal. */
  lookAt(finalKey: string | undefined): void {
    const ofKey = this.all.filter(({ claim }) => finalKey === undefined || claim.finalKey === finalKey);
    for (const hold of ofKey) this.checkExpiry(hold);
    const meant = ofKey.filter(({ state }) => state === 'held');
    for (const hold of meant) if (hold.inStore.renewing) this.mayHaveEnded.add(hold);
    this.renewAll(meant.filter(({ inStore }) => !inStore.renewing));
  }

  /**
   * Checks one hold that the process uses now. Not within its hand-off batch: a notification at the batch's beginning
   * is mostly the end of the hold before. After the batch the hold is released, and the reply says whether it was
   * there.
   */
  lookAtHold(hold: Hold): void {
    hold.inStore.requestAgain(Math.max(this.runtime.now(), hold.batch?.until ?? 0));
    this.schedule(hold);
  }

  stop(): void {
    this.runtime.clearTimer(this.timer);
    this.timerDueAt = Infinity;
    for (const hold of this.all) this.remove(hold);
  }

  /** Ends the hold at once if its time is over. Call it before relying on a lease: the timer may be late. */
  checkExpiry(hold: Hold): void {
    const over = hold.state === 'held' ? hold.overBy(this.runtime.now()) : undefined;
    if (over) this.lose(hold, over);
  }

  /** Returns the next renewal time of holds with this lease; the first of them starts the rounds. */
  private roundOf(watchdogMs: number): number {
    const known = this.rounds.get(watchdogMs);
    // Do not postpone an overdue round: the timer is about to handle it.
    if (known !== undefined) return known;
    const first = this.runtime.now() + periodOf(watchdogMs);
    this.rounds.set(watchdogMs, first);
    return first;
  }

  private slowAt({ grantedAt, isSlow }: Hold): number {
    return isSlow ? Infinity : grantedAt + this.host.slowHoldMs;
  }

  private isSlow(hold: Hold, now: number): void {
    hold.isSlow = true;
    this.host.report(hold, Math.round(now - hold.grantedAt));
  }

  private arm(dueAt: number): void {
    this.runtime.clearTimer(this.timer);
    this.timerDueAt = dueAt;
    // A background timer: it outlives the locks it was set for, and must not keep the process alive.
    this.timer = this.runtime.setTimer(() => this.tick(), dueAt - this.runtime.now(), true);
  }

  private tick(): void {
    this.timerDueAt = Infinity;
    const now = this.runtime.now();
    const due: Hold[] = [];
    const watched = new Set<number>();
    let nextAt = Infinity;
    for (const hold of this.all) {
      // A listener of a loss may have ended other leases.
      if (hold.state !== 'held') continue;
      const over = hold.overBy(now);
      if (over) {
        this.lose(hold, over);
        continue;
      }
      if (now >= this.slowAt(hold)) this.isSlow(hold, now);
      // A listener of that may have released it.
      if ((hold.state as HoldState) !== 'held') continue;
      const { renewedLeaseMs, requestAgainAt } = hold;
      if (renewedLeaseMs !== undefined) watched.add(renewedLeaseMs);
      const isRound = renewedLeaseMs !== undefined && now >= (this.rounds.get(renewedLeaseMs) ?? now);
      if (!hold.inStore.renewing && (isRound || now >= requestAgainAt)) due.push(hold);
      // A check that is due now is being sent; only later ones need the timer.
      nextAt = Math.min(nextAt, hold.validUntil, requestAgainAt > now ? requestAgainAt : Infinity);
      nextAt = Math.min(nextAt, this.slowAt(hold));
    }
    for (const [watchdogMs, at] of [...this.rounds]) {
      if (!watched.has(watchdogMs)) this.rounds.delete(watchdogMs);
      else if (now >= at) this.rounds.set(watchdogMs, now + periodOf(watchdogMs));
    }
    for (const at of this.rounds.values()) nextAt = Math.min(nextAt, at);
    this.renewAll(due);
    if (nextAt < this.timerDueAt) this.arm(nextAt);
  }

  /** Sends one request for each kind, so that the reply for one kind does not wait for another. */
  private renewAll(holds: readonly Hold[]): void {
    for (const kind of new Set(holds.map(({ claim }) => claim.kind))) {
      void this.renew(holds.filter(({ claim }) => claim.kind === kind));
    }
  }

  private async renew(holds: readonly Hold[]): Promise<void> {
    const sentAt = this.runtime.now();
    const requested = holds.map(requestedMsOf);
    holds.forEach((hold, i) => hold.inStore.renewalSent(sentAt, requested[i]!));
    let replies: readonly (ExtendReply | undefined)[] | undefined;
    let failure: unknown;
    try {
      const claims = holds.map((hold, i) => renewalOf(hold, requested[i]!));
      replies = await this.requests.extendMany(claims);
    } catch (error) {
      failure = error;
    }
    const repliedAt = this.runtime.now();
    holds.forEach((hold, i) => {
      hold.inStore.renewalOver(repliedAt, requested[i]!);
      this.replied(hold, replies?.[i] ?? { status: 'failed', cause: failure }, sentAt, requested[i]!);
    });
    this.renewAll(
      holds.filter(
        (hold) => this.mayHaveEnded.delete(hold) && hold.state === 'held' && !hold.inStore.renewing,
      ),
    );
  }

  private replied(hold: Hold, reply: ExtendReply, sentAt: number, requestedMs: number): void {
    if (hold.state !== 'held' || !this.holds.has(hold)) return;
    const now = this.runtime.now();
    if (reply.status === 'lost' && reply.intruder) return this.lose(hold, 'entered');
    // A late reply must not revive a hold that has expired for its holder.
    const over = hold.overBy(now);
    if (over) return this.lose(hold, over);
    if (reply.status === 'lost') return this.lose(hold, 'refused');
    if (reply.status === 'held') {
      // No pause may come between the read of the clock and this line.
      hold.inStore.renew(reply.since ?? sentAt, requestedMs, reply.validForMs, now);
      hold.inStore.retryRenewal(undefined);
      this.schedule(hold);
      this.requests.replied();
      return;
    }
    const { cause } = reply;
    if (cause instanceof StoreFailure) this.requests.failed(cause);
    const leaseMs = Math.min(hold.watchdogMs ?? hold.claim.leaseMs, hold.inStore.validForMs);
    // The store works, and others have locked the hold for a moment.
    const isBlocked = cause instanceof StoreFailure && cause.transient;
    hold.inStore.retryRenewal(now + Math.min(retryMsOf(leaseMs), isBlocked ? BLOCKED_RETRY_MS : Infinity));
    if (hold.requestAgainAt < this.timerDueAt) this.arm(hold.requestAgainAt);
  }

  private lose(hold: Hold, reason: LossReason): void {
    this.remove(hold);
    hold.lose(reason);
  }
}
