import type { LossReason } from '../lock-events.js';
import type { LockKind } from '../kinds/kinds.js';
import type { Claim } from '../seam/claim.js';

export type HoldState = 'held' | 'lost' | 'released';

/** The head of a local queue, as the end of a hold has to tell it. */
export interface Head {
  /** Gives the hold to the next caller of this process; false when it has to go back to the store. */
  passOn(hold: Hold): boolean;
  /** Its release is on its way to the store: what is asked for now comes there behind it. */
  releaseSent(): void;
  /** Its release is over. `othersWaiting`: somebody in another process wants the key too; undefined: it failed. */
  releaseOver(othersWaiting: boolean | undefined): void;
  /** It has ended without a release, or was never somebody's. */
  leave(): void;
}

/** What is left of a process's turn: for how many more leases there are tokens, and until when. */
export interface Turn {
  leasesLeft: number;
  /** The next lease's token; undefined without fencing. */
  nextToken: number | undefined;
  readonly until: number;
}

/** How the store granted a hold. */
export interface Granted {
  readonly token: number | undefined;
  readonly grantedAt: number;
  /** When the request was sent that was answered. */
  readonly sentAt: number;
  readonly validForMs: number;
  /** Aborts when the store learns by itself that the hold is gone. */
  readonly lost?: AbortSignal | undefined;
  /** See `Grant.grantedBy`. */
  readonly grantedBy?: readonly string[] | undefined;
  /** See `Grant.owner`. */
  readonly owner?: string | undefined;
}

/**
 * What one owner has in the store, as far as this process knows, while one lease has it. When the lease is over, the
 * owner's hold can be passed on to another lease: as a successor of this one. Its state is changed in this file only;
 * what is left of the turn is shared by its successors, and changed by `passedOn`.
 */
export class Hold {
  private current: HoldState = 'held';
  private reason: LossReason | undefined;
  private watchdog: number | undefined;
  private claimed: Claim;
  private storeOwner: string;
  private fencingToken: number | undefined;
  private confirmedAt: number;
  private certainUntil: number;
  private lastUntil: number;
  /** For how long the store granted it; a renewal may have made that longer. */
  private firstLeaseMs: number;
  private keptUntil = 0;
  private isRenewing = false;
  private requests = 0;
  private lengthened = false;
  /** Until when leases asked for it beyond its lease, by the part of each. */
  private demands: Map<object, number> | undefined;
  private ownUntil: number;
  private ownTurn: Turn | undefined;
  private leaseCount = 1;
  private reportedCount = 0;
  private joinableUntil = -Infinity;
  private retry = Infinity;
  private look = Infinity;
  private lossHandler: ((hold: Hold) => void) | undefined;
  private lossListeners: Set<() => void> | undefined;
  readonly grantedAt: number;
  /** The kind of lock that its caller asked for; see {@link becomes}. */
  readonly takenAs: LockKind;
  /** Aborts when the store learns by itself that the hold is gone. */
  readonly lost: AbortSignal | undefined;
  /** See `Grant.grantedBy`. */
  readonly grantedBy: readonly string[] | undefined;

  constructor(
    /** The key as the caller wrote it. */
    readonly key: string,
    private queueHead: Head,
    claim: Claim,
    watchdogMs: number | undefined,
    { token, grantedAt, sentAt, validForMs, lost, grantedBy, owner = claim.owner }: Granted,
  ) {
    this.claimed = claim;
    this.takenAs = claim.kind;
    this.watchdog = watchdogMs;
    this.fencingToken = token;
    this.grantedAt = grantedAt;
    this.lost = lost;
    this.grantedBy = grantedBy;
    this.storeOwner = owner;
    this.confirmedAt = sentAt;
    this.certainUntil = sentAt + validForMs;
    this.ownUntil = this.certainUntil;
    this.lastUntil = grantedAt + validForMs;
    this.firstLeaseMs = validForMs;
  }

  /** Who is told of its end. */
  get head(): Head {
    return this.queueHead;
  }

  get state(): HoldState {
    return this.current;
  }

  get lossReason(): LossReason | undefined {
    return this.reason;
  }

  get claim(): Claim {
    return this.claimed;
  }

  /** The name of its owner in the store. */
  get owner(): string {
    return this.storeOwner;
  }

  get token(): number | undefined {
    return this.fencingToken;
  }

  /** The lease that the watchdog renews; undefined for a fixed lease. */
  get watchdogMs(): number | undefined {
    return this.watchdog;
  }

  /** When the newest request that the store confirmed was sent; older confirmations are ignored. */
  get confirmedFrom(): number {
    return this.confirmedAt;
  }

  /** Until when the hold is certainly there, on the runtime's clock. */
  get validUntil(): number {
    return this.certainUntil;
  }

  /** Until when the store may have it at the most: requests without an answer may have been done. */
  get mayLastUntil(): number {
    return this.lastUntil;
  }

  /** It stays in the store until this moment, however early the work ends. */
  get keepUntil(): number {
    return this.keptUntil;
  }

  /** How often it may still be passed on, and until when; set by the caller that took it from the store. */
  get turn(): Turn | undefined {
    return this.ownTurn;
  }

  /** A renewal is on its way. */
  get renewing(): boolean {
    return this.isRenewing;
  }

  /**
   * When it is to be asked for by itself, beside the rounds of the watchdog: when a request that failed is to be tried
   * again; or at a third of its time, where the store gave less than was asked for. `Infinity` when the rounds do. What
   * is within a tenth counts as what was asked for: holds with a lease in common share their rounds.
   */
  get askAgainAt(): number {
    const again = Math.min(this.retry, this.look);
    if (this.retry !== Infinity || this.watchdog === undefined) return again;
    const { validForMs } = this;
    const third = validForMs < 0.9 * this.watchdog ? this.confirmedAt + Math.floor(validForMs / 3) : Infinity;
    return Math.min(again, third);
  }

  /** Somebody may have ended it: asks the store at that moment, and goes on until then as if nothing were. */
  askAgain(at: number): void {
    this.look = Math.min(this.look, at);
  }

  /** How long the store said that it is valid, in ms from the request that was confirmed last. */
  get validForMs(): number {
    return this.certainUntil - this.confirmedAt;
  }

  /** It has a holder now: what the service does when it turns out to be lost. */
  heldWith(lossHandler: (hold: Hold) => void): void {
    this.lossHandler = lossHandler;
  }

  beginTurn(turn: Turn): void {
    this.ownTurn = turn;
  }

  /** Other leases of the process may join it until then. */
  beginSharing(until: number): void {
    this.joinableUntil = until;
  }

  /** How many leases have it. */
  get leases(): number {
    return this.leaseCount;
  }

  /** How many of its leases the event `acquired` has reported, and no event of their end yet. */
  get reported(): number {
    return this.reportedCount;
  }

  /** The event `acquired` reports one of its leases. */
  reports(): void {
    this.reportedCount += 1;
  }

  /** An event reports that so many of these leases have ended. */
  endsReported(leases: number): void {
    this.reportedCount -= leases;
  }

  /**
   * One more lease has it from now on, if it may: only a watched one, with the same lease to renew, and only while the
   * store certainly has the hold as it was taken.
   */
  joins(watchdogMs: number, now: number): boolean {
    const mayJoin = now < this.joinableUntil && this.watchdog === watchdogMs && this.keptUntil <= now;
    if (!mayJoin || !this.isSound(now)) return false;
    this.leaseCount += 1;
    return true;
  }

  /** One of the leases that have it has ended. True when others have it still. */
  leaves(): boolean {
    this.leaseCount -= 1;
    return this.leaseCount > 0;
  }

  /** The store confirmed the hold; an answer to an older request changes nothing. */
  confirm(sentAt: number, validForMs: number): void {
    if (sentAt < this.confirmedAt) return;
    this.confirmedAt = sentAt;
    this.certainUntil = sentAt + validForMs;
  }

  /**
   * The store answered a renewal to `askedMs`. The answer counts from before its request, which may have been under way
   * for long; and since a renewal never shortens, what was known before stays true, unless the answer certainly says
   * less. What is left in the store can also be more than anybody asked for, when the server's clock stepped back: that
   * is not believed, since the clock may be set right again.
   */
  renew(sentAt: number, askedMs: number, leftMs: number, answeredAt: number): void {
    const less = answeredAt + leftMs < this.certainUntil;
    this.confirm(sentAt, less ? leftMs : Math.max(Math.min(leftMs, askedMs), this.certainUntil - sentAt));
  }

  /** A renewal is sent that asks for so much. */
  renewalSent(sentAt: number, askedMs: number): void {
    this.isRenewing = true;
    this.retry = Infinity;
    this.look = Infinity;
    this.mayLast(sentAt + askedMs);
  }

  /** It was answered, or failed. */
  renewalOver(at: number, askedMs: number): void {
    this.isRenewing = false;
    this.mayLast(at + askedMs);
  }

  /** It failed, and is to be tried again at that moment; `Infinity`: it did not fail. */
  retryRenewal(at: number): void {
    this.retry = at;
  }

  /** Its holder's request about it to last so long is sent, or over. */
  holdersRequest(which: 'sent' | 'over', at: number, askedMs: number): void {
    this.requests += which === 'sent' ? 1 : -1;
    this.mayLast(at + askedMs);
  }

  /** The lease of the part asks for more than its lease: no other holder may inherit that. */
  lengthenedBy(part: object, until: number): void {
    this.lengthened = true;
    this.demands ??= new Map();
    this.demands.set(part, Math.max(until, this.demands.get(part) ?? 0));
  }

  /** The lease of the part has ended. True when it had asked for more than its lease. */
  dropsDemand(part: object): boolean {
    return this.demands?.delete(part) ?? false;
  }

  /** For how long its leases want it from now on, in ms, where the store may have it for longer; else undefined. */
  wantedMs(now: number): number | undefined {
    if (this.current !== 'held' || now >= this.certainUntil) return undefined;
    const { watchdog, ownUntil, claimed } = this;
    const own = watchdog === undefined && ownUntil > now ? ownUntil : now + (watchdog ?? claimed.leaseMs);
    const until = Math.max(own, this.keptUntil, ...(this.demands?.values() ?? []));
    return this.lastUntil > until ? Math.ceil(until - now) : undefined;
  }

  /** The store is asked to keep it for just that time. Replies to requests before that count still: they are in that time. */
  cut(sentAt: number, keepForMs: number): void {
    this.requests += 1;
    this.certainUntil = Math.min(this.certainUntil, sentAt + keepForMs);
  }

  /** That is over. `until`: when it ends in the store at the latest; undefined when the request failed. */
  cutOver(until: number | undefined): void {
    this.requests -= 1;
    this.lastUntil = until ?? this.lastUntil;
  }

  /** From now on it has a fixed lease: a renewal would lengthen it again. */
  stopRenewing(): void {
    this.watchdog = undefined;
  }

  /** The store gave it the claim's lease anew, and a new token. */
  rearmed(claim: Claim, { token, sentAt, validForMs, grantedAt, owner = claim.owner }: Granted): void {
    this.claimed = claim;
    this.storeOwner = owner;
    this.fencingToken = token;
    this.confirm(sentAt, validForMs);
    this.ownUntil = this.certainUntil;
    this.mayLast(grantedAt + validForMs);
  }

  /** Its owner has it as another kind of lock from now on: it is not passed on any more, and has no token. */
  becomes(claim: Claim, head: Head): void {
    this.claimed = claim;
    this.queueHead = head;
    this.fencingToken = undefined;
    this.ownTurn = undefined;
  }

  /** It has to stay in the store until then, whenever the work ends. */
  keepAtLeastUntil(until: number): void {
    this.keptUntil = Math.max(this.keptUntil, until);
  }

  /** Raises the latest time at which the store may still have it. */
  private mayLast(until: number): void {
    this.lastUntil = Math.max(this.lastUntil, until);
  }

  /**
   * Whether the store certainly has it, as it was taken and for long enough: nothing about it is under way or in
   * doubt, its holder has not asked for more, and at least two thirds of its time are left: of the lease that it was
   * given first, where that was a shorter one.
   */
  isSound(now: number): boolean {
    const certain =
      this.current === 'held' &&
      !this.isRenewing &&
      !this.lengthened &&
      this.requests === 0 &&
      this.retry === Infinity;
    return certain && this.certainUntil - now >= (2 / 3) * Math.min(this.claimed.leaseMs, this.firstLeaseMs);
  }

  /** The same hold for the next lease: with a token of its own, and without listeners. */
  successor(token: number | undefined, grantedAt: number): Hold {
    const { key, head, claimed, watchdog, confirmedAt, validForMs, lost, grantedBy, owner } = this;
    const granted = { token, grantedAt, sentAt: confirmedAt, validForMs, lost, grantedBy, owner };
    const next = new Hold(key, head, claimed, watchdog, granted);
    next.lastUntil = this.lastUntil;
    next.firstLeaseMs = this.firstLeaseMs;
    next.look = this.look;
    next.ownTurn = this.ownTurn;
    return next;
  }

  /** For how long it is still to stay in the store, in ms; undefined when it may go at once. */
  keepForMs(now: number): number | undefined {
    return this.keptUntil > now ? Math.ceil(this.keptUntil - now) : undefined;
  }

  /** Its holder has released it. */
  release(): void {
    this.current = 'released';
  }

  /** The store said at its release that it was not there any more. Its holder hears that as the answer. */
  wasGone(reason: LossReason): void {
    this.current = 'lost';
    this.reason = reason;
  }

  /** Listens for the loss; the returned function stops that. */
  onLoss(listener: () => void): () => void {
    const listeners = (this.lossListeners ??= new Set());
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** The hold is not there any more. Listeners hear of it once. */
  lose(reason: LossReason): void {
    if (this.current !== 'held') return;
    this.current = 'lost';
    this.reason = reason;
    this.lossHandler?.(this);
    for (const listener of [...(this.lossListeners ?? [])]) listener();
  }
}
