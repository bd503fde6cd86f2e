import type { ExtendReply } from '../seam/claim.js';
import type { Hold } from './hold.js';
import { StoreFailure, type LockStore } from '../seam/lock-store.js';
import type { Runtime } from '../runtime.js';
import type { StoreHealth } from '../store-health.js';
import { Turnover } from '../compacting.js';

/** How often holds of a lease are renewed, in ms. */
const periodOf = (watchdogMs: number): number => Math.floor(watchdogMs / 3);

/** How soon a failed renewal is tried again, in ms. */
const retryMsOf = (watchdogMs: number): number => Math.max(50, Math.min(1_000, Math.floor(watchdogMs / 10)));

/** The lease that a watched hold is renewed to; a hold may get a fixed lease while its renewal is under way. */
const leaseOf = ({ watchdogMs, claim }: Hold): number => watchdogMs ?? claim.leaseMs;

/**
 * Keeps all holds of a process alive, with one timer: every third of their lease it renews the watched ones of the
 * same lease in one batch, and it notices the end of every lease.
 *
 * A failed renewal is unknown, not lost: it is tried again until the hold's time is over. A refusal, or the end
 * of the time, is a loss. Nothing is ever taken again silently.
 */
export class LeaseKeeper {
  private holds = new Set<Hold>();
  private readonly turnover = new Turnover();
  /** When all watched holds of a lease (its length in ms) are renewed next. */
  private readonly rounds = new Map<number, number>();
  private timer: unknown;
  private timerDueAt = Infinity;

  constructor(
    private readonly store: LockStore,
    private readonly runtime: Runtime,
    private readonly health: StoreHealth,
  ) {}

  get all(): ReadonlySet<Hold> {
    return this.holds;
  }

  add(hold: Hold): void {
    this.holds.add(hold);
    this.watch(hold);
  }

  /** Makes the timer fit a hold whose time or kind of lease has changed. */
  watch(hold: Hold): void {
    const { watchdogMs, validUntil } = hold;
    const dueAt = watchdogMs === undefined ? validUntil : Math.min(this.roundOf(watchdogMs), validUntil);
    if (dueAt < this.timerDueAt) this.arm(dueAt);
  }

  /** The timer stays: it finds nothing to do, and is not set again. Setting it for each short lock would cost more. */
  remove(hold: Hold): void {
    if (this.holds.delete(hold) && this.turnover.isDue(this.holds.size)) this.holds = new Set(this.holds);
  }

  stop(): void {
    this.runtime.clearTimer(this.timer);
    this.timerDueAt = Infinity;
    this.holds.clear();
  }

  /** Ends the hold at once if its time is over; for whoever looks at a lease before the timer does. */
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
    // In the background: it outlives the locks it was set for, and whoever works under one keeps the process alive.
    this.timer = this.runtime.setTimer(() => this.tick(), dueAt - this.runtime.now(), true);
  }

  private tick(): void {
    this.timerDueAt = Infinity;
    const now = this.runtime.now();
    const due: Hold[] = [];
    const watched = new Set<number>();
    let nextAt = Infinity;
    for (const hold of [...this.holds]) {
      // Whoever hears of a loss may end other leases.
      if (hold.state !== 'held') continue;
      if (now >= hold.validUntil) {
        this.lose(hold, 'expired');
        continue;
      }
      const { watchdogMs } = hold;
      if (watchdogMs !== undefined) {
        watched.add(watchdogMs);
        const round = now >= (this.rounds.get(watchdogMs) ?? now);
        if (!hold.renewing && (round || now >= hold.retryAt)) due.push(hold);
      }
      nextAt = Math.min(nextAt, hold.validUntil, hold.retryAt > now ? hold.retryAt : Infinity);
    }
    for (const [watchdogMs, at] of [...this.rounds]) {
      if (!watched.has(watchdogMs)) this.rounds.delete(watchdogMs);
      else if (now >= at) this.rounds.set(watchdogMs, now + periodOf(watchdogMs));
    }
    for (const at of this.rounds.values()) nextAt = Math.min(nextAt, at);
    if (due.length > 0) void this.renew(due);
    if (nextAt < this.timerDueAt) this.arm(nextAt);
  }

  private async renew(holds: readonly Hold[]): Promise<void> {
    const sentAt = this.runtime.now();
    for (const hold of holds) {
      hold.renewing = true;
      hold.mayLast(sentAt + leaseOf(hold));
      hold.retryAt = Infinity;
    }
    let replies: readonly (ExtendReply | undefined)[] = [];
    let failure: unknown;
    try {
      const claims = holds.map((hold) => ({ ...hold.claim, leaseMs: leaseOf(hold), fenceBlock: 0 }));
      replies = await this.store.extendMany(claims);
    } catch (error) {
      failure = error;
    }
    const answeredAt = this.runtime.now();
    holds.forEach((hold, i) => {
      hold.renewing = false;
      hold.mayLast(answeredAt + leaseOf(hold));
      this.settle(hold, replies[i] ?? { status: 'failed', cause: failure }, sentAt);
    });
  }

  private settle(hold: Hold, reply: ExtendReply, sentAt: number): void {
    if (hold.state !== 'held' || !this.holds.has(hold)) return;
    if (reply.status === 'lost') return this.lose(hold, 'refused');
    const now = this.runtime.now();
    // Whoever had stopped believing in the hold may not start again because an answer came late.
    if (now >= hold.validUntil) return this.lose(hold, 'expired');
    if (reply.status === 'held') {
      // At once: whatever comes between the look at the clock and this may take long.
      hold.retryAt = Infinity;
      hold.renew(sentAt, leaseOf(hold), reply.validForMs, now);
      this.watch(hold);
      this.health.works();
    } else {
      if (reply.cause instanceof StoreFailure) this.health.failed(reply.cause);
      hold.retryAt = this.runtime.now() + retryMsOf(leaseOf(hold));
      if (hold.retryAt < this.timerDueAt) this.arm(hold.retryAt);
    }
  }

  private lose(hold: Hold, reason: 'expired' | 'refused'): void {
    this.remove(hold);
    hold.lose(reason);
  }
}
