import { onAbort } from '../abort-listeners.js';
import { CompactingMap } from '../compacting.js';
import type { Runtime } from '../runtime.js';
import type { ExtendReply } from '../seam/reply.js';
import type { StoreRequests } from '../store-requests.js';
import { StoreFailure } from '../seam/store-failure.js';
import type { Hold } from './hold.js';

/** How often holds of a lease are renewed, in ms. */
const periodOf = (watchdogMs: number): number => Math.floor(watchdogMs / 3);

/** How soon a failed renewal is tried again, in ms. */
const retryMsOf = (watchdogMs: number): number => Math.max(50, Math.min(1_000, Math.floor(watchdogMs / 10)));

/** For a fixed lease: a lengthening that changes nothing, because more than that is left. */
const ONLY_LOOKING_MS = 1;

/** The lease that a hold is renewed to; one with a fixed lease is only looked at. */
const askedMsOf = ({ watchdogMs }: Hold): number => watchdogMs ?? ONLY_LOOKING_MS;

/**
 * Keeps all holds of a process alive, with one timer: every third of their lease it renews the watched ones of the
 * same lease in one batch, and it notices the end of every lease.
 *
 * A failed renewal is unknown, not lost: it is tried again until the hold's time is over. A refusal, or the end
 * of the time, is a loss. Nothing is ever taken again silently.
 */
export class LeaseKeeper {
  /** With what stops listening for a loss that the store tells of by itself. */
  private readonly holds = new CompactingMap<Hold, (() => void) | undefined>();
  /** When all watched holds of a lease (its length in ms) are renewed next. */
  private readonly rounds = new Map<number, number>();
  /** Holds that something may have happened to since the request about them that is under way was sent. */
  private readonly doubted = new Set<Hold>();
  private timer: unknown;
  private timerDueAt = Infinity;

  constructor(
    private readonly requests: StoreRequests,
    private readonly runtime: Runtime,
  ) {}

  /** All holds at this moment. */
  get all(): readonly Hold[] {
    return [...this.holds.keys()];
  }

  get size(): number {
    return this.holds.size;
  }

  add(hold: Hold): void {
    const { lost } = hold;
    this.holds.set(hold, lost && onAbort(lost, () => this.lose(hold, 'refused')));
    this.schedule(hold);
  }

  /** Makes the timer fit a hold whose time or kind of lease has changed. */
  schedule(hold: Hold): void {
    const { watchdogMs, validUntil, askAgainAt } = hold;
    const roundAt = watchdogMs === undefined ? Infinity : this.roundOf(watchdogMs);
    const dueAt = Math.min(roundAt, validUntil, askAgainAt);
    if (dueAt < this.timerDueAt) this.arm(dueAt);
  }

  /** The timer stays: it finds nothing to do, and is not set again. Setting it for each short lock would cost more. */
  remove(hold: Hold): void {
    this.holds.get(hold)?.();
    this.holds.delete(hold);
    this.doubted.delete(hold);
  }

  /** Something may have happened to the holds of a key, or to all: asks the store now, not at the next renewal. */
  lookAt(finalKey: string | undefined): void {
    const meant = this.all.filter(
      ({ claim, state }) => state === 'held' && (finalKey === undefined || claim.finalKey === finalKey),
    );
    for (const hold of meant) if (hold.renewing) this.doubted.add(hold);
    this.renewAll(meant.filter(({ renewing }) => !renewing));
  }

  /**
   * The same for one hold that the process uses now. Not within its turn: what is heard at its beginning is the end of
   * the hold before, mostly, and after its turn it goes back to the store, which says whether it was there.
   */
  lookAtHold(hold: Hold): void {
    hold.askAgain(Math.max(this.runtime.now(), hold.turn?.until ?? 0));
    this.schedule(hold);
  }

  stop(): void {
    this.runtime.clearTimer(this.timer);
    this.timerDueAt = Infinity;
    for (const hold of this.all) this.remove(hold);
  }

  /** Ends the hold at once if its time is over. To be called before a lease is relied on: the timer may be late. */
  checkExpiry(hold: Hold): void {
    if (hold.state === 'held' && this.runtime.now() >= hold.validUntil) this.lose(hold, 'expired');
  }

  /** When holds of this lease are renewed next; the first of them begins the rounds. */
  private roundOf(watchdogMs: number): number {
    const known = this.rounds.get(watchdogMs);
    // One that is overdue is not put off: the timer is on its way to it.
    if (known !== undefined) return known;
    const first = this.runtime.now() + periodOf(watchdogMs);
    this.rounds.set(watchdogMs, first);
    return first;
  }

  private arm(dueAt: number): void {
    this.runtime.clearTimer(this.timer);
    this.timerDueAt = dueAt;
    // In the background: the timer outlives the locks it was set for, and need not keep the process alive.
    this.timer = this.runtime.setTimer(() => this.tick(), dueAt - this.runtime.now(), true);
  }

  private tick(): void {
    this.timerDueAt = Infinity;
    const now = this.runtime.now();
    const due: Hold[] = [];
    const watched = new Set<number>();
    let nextAt = Infinity;
    for (const hold of this.all) {
      // Who hears of a loss may end other leases.
      if (hold.state !== 'held') continue;
      if (now >= hold.validUntil) {
        this.lose(hold, 'expired');
        continue;
      }
      const { watchdogMs, askAgainAt } = hold;
      if (watchdogMs !== undefined) watched.add(watchdogMs);
      const isRound = watchdogMs !== undefined && now >= (this.rounds.get(watchdogMs) ?? now);
      if (!hold.renewing && (isRound || now >= askAgainAt)) due.push(hold);
      // One that is due now is on its way; only later ones need the timer.
      nextAt = Math.min(nextAt, hold.validUntil, askAgainAt > now ? askAgainAt : Infinity);
    }
    for (const [watchdogMs, at] of [...this.rounds]) {
      if (!watched.has(watchdogMs)) this.rounds.delete(watchdogMs);
      else if (now >= at) this.rounds.set(watchdogMs, now + periodOf(watchdogMs));
    }
    for (const at of this.rounds.values()) nextAt = Math.min(nextAt, at);
    this.renewAll(due);
    if (nextAt < this.timerDueAt) this.arm(nextAt);
  }

  /** One request for each kind: what the store says of one kind does not wait for what it says of another. */
  private renewAll(holds: readonly Hold[]): void {
    for (const kind of new Set(holds.map(({ claim }) => claim.kind))) {
      void this.renew(holds.filter(({ claim }) => claim.kind === kind));
    }
  }

  private async renew(holds: readonly Hold[]): Promise<void> {
    const sentAt = this.runtime.now();
    const asked = holds.map(askedMsOf);
    holds.forEach((hold, i) => hold.renewalSent(sentAt, asked[i]!));
    let replies: readonly (ExtendReply | undefined)[] = [];
    let failure: unknown;
    try {
      const claims = holds.map(({ claim }, i) => ({ ...claim, leaseMs: asked[i]!, tokens: 0 }));
      replies = await this.requests.extendMany(claims);
    } catch (error) {
      failure = error;
    }
    const answeredAt = this.runtime.now();
    holds.forEach((hold, i) => {
      hold.renewalOver(answeredAt, asked[i]!);
      this.answered(hold, replies[i] ?? { status: 'failed', cause: failure }, sentAt, asked[i]!);
    });
    this.renewAll(
      holds.filter((hold) => this.doubted.delete(hold) && hold.state === 'held' && !hold.renewing),
    );
  }

  private answered(hold: Hold, reply: ExtendReply, sentAt: number, askedMs: number): void {
    if (hold.state !== 'held' || !this.holds.has(hold)) return;
    if (reply.status === 'lost') return this.lose(hold, reply.entered ? 'entered' : 'refused');
    const now = this.runtime.now();
    // A hold that was over for its holder may not begin again because an answer came late.
    if (now >= hold.validUntil) return this.lose(hold, 'expired');
    if (reply.status === 'held') {
      // Nothing that can pause may stand between the look at the clock and this.
      hold.renew(sentAt, askedMs, reply.validForMs, now);
      hold.retryRenewal(Infinity);
      this.schedule(hold);
      this.requests.answered();
      return;
    }
    if (reply.cause instanceof StoreFailure) this.requests.failed(reply.cause);
    const leaseMs = Math.min(hold.watchdogMs ?? hold.claim.leaseMs, hold.validForMs);
    hold.retryRenewal(now + retryMsOf(leaseMs));
    if (hold.askAgainAt < this.timerDueAt) this.arm(hold.askAgainAt);
  }

  private lose(hold: Hold, reason: 'expired' | 'refused' | 'entered'): void {
    this.remove(hold);
    hold.lose(reason);
  }
}
