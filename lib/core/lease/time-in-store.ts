import type { Session } from '../seam/lease-model.js';

/** Times of the store's grant of a hold. */
export interface GrantedTime {
  readonly grantedAt: number;
  /** When the request was sent that got the reply. */
  readonly sentAt: number;
  readonly validForMs: number;
  /** Set for a hold that ends with a session. */
  readonly session?: Session | undefined;
}

/**
 * Until when the store has a hold, as far as this process knows: certainly, and at most. All times are on the runtime's
 * clock. A confirmation counts from before its request; a request with an unknown outcome may have been executed.
 */
export class TimeInStore {
  private certainUntil: number;
  private confirmedAt: number;
  private lastUntil: number;
  /** Lease that the store granted, in ms; a renewal may have extended it. */
  private firstLeaseMs: number;
  private isRenewing = false;
  private requests = 0;
  private acquiredFrom: number;
  private retry: number | undefined;
  private look: number | undefined;
  readonly session: Session | undefined;

  /** @param countsForMs how long the grant counts from when its request was sent */
  constructor({ grantedAt, sentAt, validForMs, session }: GrantedTime, countsForMs: number) {
    this.session = session;
    this.confirmedAt = sentAt;
    this.acquiredFrom = sentAt;
    this.certainUntil = sentAt + countsForMs;
    this.lastUntil = session ? Infinity : grantedAt + validForMs;
    this.firstLeaseMs = validForMs;
  }

  /** Until when the store certainly has the hold. */
  get validUntil(): number {
    return this.session ? Math.min(this.certainUntil, this.session.validUntil) : this.certainUntil;
  }

  /** The same without the session: in a session, the end of a fixed lease. */
  get leaseUntil(): number {
    return this.certainUntil;
  }

  /** How long the hold was valid at the last confirmation, in ms from when that request was sent. */
  get validForMs(): number {
    return this.certainUntil - this.confirmedAt;
  }

  /** Until when the store may keep it at most: requests with an unknown outcome may have been executed. */
  get mayLastUntil(): number {
    return this.lastUntil;
  }

  /** When the newest confirmed request was sent; older confirmations are ignored. */
  get confirmedFrom(): number {
    return this.confirmedAt;
  }

  /** When the request was sent that acquired it: for this lease, or for one that handed it off. */
  get firstSentAt(): number {
    return this.acquiredFrom;
  }

  get renewing(): boolean {
    return this.isRenewing;
  }

  /**
   * Returns the time of the next request about this hold outside the watchdog's rounds; `Infinity` if the rounds
   * suffice. There are three reasons: the retry of a failed renewal, a requested check, and a granted time of less than
   * 90 % of the lease. In the last case the renewal is at a third of the granted time. Otherwise holds with one lease
   * length share their rounds.
   */
  requestAgainAt(renewedLeaseMs: number | undefined): number {
    const again = Math.min(this.retry ?? Infinity, this.look ?? Infinity);
    const { validForMs } = this;
    if (this.retry !== undefined || renewedLeaseMs === undefined) return again;
    const third =
      validForMs < 0.9 * renewedLeaseMs ? this.confirmedAt + Math.floor(validForMs / 3) : Infinity;
    return Math.min(again, third);
  }

  /** Requests a check at `at`, because the hold may have ended. Until then it counts as held. */
  requestAgain(at: number): void {
    this.look = Math.min(this.look ?? Infinity, at);
  }

  /** Applies a reacquisition: what was done to the hold before that request does not concern it. */
  reacquired(sentAt: number, countsForMs: number): void {
    this.acquiredFrom = sentAt;
    this.confirm(sentAt, countsForMs);
  }

  /** Applies the store's confirmation of the hold; ignores the reply to an older request. */
  confirm(sentAt: number, countsForMs: number): void {
    if (sentAt < this.confirmedAt) return;
    this.confirmedAt = sentAt;
    this.certainUntil = sentAt + countsForMs;
  }

  /**
   * Applies the reply to a renewal to `requestedMs`. The reply counts from before the request, which may have been in
   * progress for long. A renewal never shortens, so what was known before stays true, unless the reply certainly says
   * less. More time than was ever requested means that the server's clock stepped back; it is ignored, since the clock
   * may be corrected.
   */
  renew(sentAt: number, requestedMs: number, leftMs: number, repliedAt: number): void {
    // Of the end of a fixed lease in a session the store knows nothing.
    if (this.session) return void (this.certainUntil = Math.max(this.certainUntil, sentAt + requestedMs));
    const less = repliedAt + leftMs < this.certainUntil;
    this.confirm(sentAt, less ? leftMs : Math.max(Math.min(leftMs, requestedMs), this.certainUntil - sentAt));
  }

  /** A renewal to `requestedMs` has been sent. */
  renewalSent(sentAt: number, requestedMs: number): void {
    this.isRenewing = true;
    this.retry = undefined;
    this.look = undefined;
    this.mayLast(sentAt + requestedMs);
  }

  /** The renewal has got its reply, or failed. */
  renewalOver(at: number, requestedMs: number): void {
    this.isRenewing = false;
    this.mayLast(at + requestedMs);
  }

  /** Schedules the retry of a failed renewal; undefined: it did not fail. */
  retryRenewal(at: number | undefined): void {
    this.retry = at;
  }

  /** A request of its holder to extend it to `requestedMs` has been sent, or has ended. */
  holdersRequest(which: 'sent' | 'over', at: number, requestedMs: number): void {
    this.requests += which === 'sent' ? 1 : -1;
    this.mayLast(at + requestedMs);
  }

  /** Its leases rely on it no longer than `until`: a request to shorten it will be sent. */
  relyUntil(until: number): void {
    this.certainUntil = Math.min(this.certainUntil, until);
  }

  /**
   * A request to shorten it to `keepForMs` has been sent. Replies to earlier requests are within that time, so they
   * still count.
   */
  cut(sentAt: number, keepForMs: number): void {
    this.requests += 1;
    this.relyUntil(sentAt + keepForMs);
  }

  /**
   * The request to shorten it has ended.
   *
   * @param until when the hold ends in the store at the latest; undefined: the request failed
   */
  cutOver(until: number | undefined): void {
    this.requests -= 1;
    this.lastUntil = until ?? this.lastUntil;
  }

  /** Raises the latest time at which the store may still have it. */
  mayLast(until: number): void {
    this.lastUntil = Math.max(this.lastUntil, until);
  }

  /**
   * Returns true when the store certainly has it for long enough, and no request about it is in progress or uncertain.
   * At least two thirds of its lease are left, or of the granted one if that was shorter.
   */
  isSound(now: number, leaseMs: number): boolean {
    if (this.isRenewing || this.requests > 0 || this.retry !== undefined) return false;
    if (this.session) return now < this.validUntil;
    return this.certainUntil - now >= (2 / 3) * Math.min(leaseMs, this.firstLeaseMs);
  }

  /** Takes over what is known of the hold, for its next lease. */
  continues(former: TimeInStore): void {
    this.lastUntil = former.lastUntil;
    this.acquiredFrom = former.acquiredFrom;
    this.firstLeaseMs = former.firstLeaseMs;
    this.look = former.look;
  }
}
