import type { Claim } from '../seam/claim.js';
import type { LossReason } from '../lock-events.js';

export type HoldState = 'held' | 'lost' | 'released';

/** The turn of the local queue that a hold occupies, as its end needs it; see `KeyQueue`. */
export interface Turn {
  readonly hints: number;
  asking(): void;
  asked(tell: boolean): void;
  failed(failure: unknown, doing: string, who?: 'all' | 'due'): void;
  passOn(watchdogMs: number | undefined, pass: () => Hold | undefined): boolean;
  leave(othersWaiting: boolean, hintsBefore?: number): void;
}

/** What is left of a process's turn: for how many more leases there are tokens, and until when. */
export interface HandOverBudget {
  leasesLeft: number;
  /** The next lease's token; undefined without fencing. */
  nextToken: number | undefined;
  readonly until: number;
}

/**
 * What one owner has in the store, as far as this process knows, while one lease has it. When the lease is over, the
 * owner's hold can be passed on to another lease: as a successor of this one.
 */
export class Hold {
  state: HoldState = 'held';
  lossReason: LossReason | undefined;
  /** When the newest request that the store confirmed was sent; older confirmations are ignored. */
  confirmedFrom: number;
  /** Until when the hold is certainly there, on the runtime's clock. */
  validUntil: number;
  /** Until when the store may have it at the most: requests without an answer may have been done. */
  mayLastUntil: number;
  /** It stays in the store until this moment, however early the work ends. */
  keepUntil = 0;
  /** A renewal is on its way. */
  renewing = false;
  /** How many requests of its holder about it are on their way. */
  asking = 0;
  /** Its holder asked for more than its lease: the next one must not inherit that. */
  extended = false;
  /** How often it may still be passed on, and until when; set by whoever took it from the store. */
  handOver: HandOverBudget | undefined;
  /** Set when a renewal failed: when to try again. */
  retryAt = Infinity;
  /** What the service does when the hold turns out to be lost; not set while it is on its way to the next lease. */
  whenLost: ((hold: Hold) => void) | undefined;
  private lossListeners: Set<() => void> | undefined;

  constructor(
    /** The key as the caller wrote it. */
    readonly key: string,
    /** The local queue whose turn it occupies. */
    readonly queue: Turn,
    public claim: Claim,
    public token: number | undefined,
    /** The lease that the watchdog renews; undefined for a fixed lease. */
    public watchdogMs: number | undefined,
    readonly grantedAt: number,
    sentAt: number,
    validForMs: number,
  ) {
    this.confirmedFrom = sentAt;
    this.validUntil = sentAt + validForMs;
    this.mayLastUntil = grantedAt + validForMs;
  }

  /** Takes in that the store confirmed the hold; late and repeated answers change nothing. */
  confirm(sentAt: number, validForMs: number): void {
    if (sentAt < this.confirmedFrom) return;
    this.confirmedFrom = sentAt;
    this.validUntil = sentAt + validForMs;
  }

  /**
   * Takes in the answer to a renewal to `askedMs`. It counts from before its request, which may have been under way for
   * long; and since a renewal never shortens, what was known before stays true, unless the answer certainly says less.
   * What is left in the store can also be more than anybody asked for, when the server's clock stepped back: that is
   * not believed, since the clock may be set right again.
   */
  renew(sentAt: number, askedMs: number, leftMs: number, answeredAt: number): void {
    const less = answeredAt + leftMs < this.validUntil;
    this.confirm(sentAt, less ? leftMs : Math.max(Math.min(leftMs, askedMs), this.validUntil - sentAt));
  }

  /** Takes in that it has to stay in the store until then, whenever the work ends. */
  keepAtLeastUntil(until: number): void {
    this.keepUntil = Math.max(this.keepUntil, until);
  }

  /** Takes in that the hold may have been lengthened, whatever the answer: when it was asked for, and when it was over. */
  mayLast(until: number): void {
    this.mayLastUntil = Math.max(this.mayLastUntil, until);
  }

  /**
   * Whether the store certainly has it, as it was taken and for long enough: nothing about it is under way or in
   * doubt, its holder has not asked for more, and at least two thirds of its time are left.
   */
  isSound(now: number): boolean {
    const certain =
      this.state === 'held' &&
      !this.renewing &&
      !this.extended &&
      this.asking === 0 &&
      this.retryAt === Infinity;
    return certain && this.validUntil - now >= (2 / 3) * this.claim.leaseMs;
  }

  /** The same hold for the next lease: with a token of its own, and nobody who listens. */
  successor(token: number | undefined, grantedAt: number): Hold {
    const { key, queue, claim, watchdogMs, confirmedFrom, validUntil } = this;
    const validForMs = validUntil - confirmedFrom;
    const next = new Hold(key, queue, claim, token, watchdogMs, grantedAt, confirmedFrom, validForMs);
    next.mayLastUntil = this.mayLastUntil;
    next.handOver = this.handOver;
    return next;
  }

  /** Listens for the loss; the returned function stops that. */
  onLoss(listener: () => void): () => void {
    const listeners = (this.lossListeners ??= new Set());
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** The hold is not there any more. Listeners hear of it once. */
  lose(reason: LossReason): void {
    if (this.state !== 'held') return;
    this.state = 'lost';
    this.lossReason = reason;
    this.whenLost?.(this);
    for (const listener of [...(this.lossListeners ?? [])]) listener();
  }
}
