import type { LossReason } from '../report/lock-events.js';
import type { LockKind } from '../kinds/kinds.js';
import type { Claim } from '../seam/claim.js';
import type { Session } from '../seam/lease-model.js';
import { ReportedLeases } from './reported-leases.js';
import { TimeInStore, type GrantedTime } from './time-in-store.js';

export type HoldState = 'held' | 'lost' | 'released';

/** Listener of the end of a hold: the local queue of its contender, or a former contender. */
export interface HoldEndListener {
  /**
   * Hands the hold off to the next caller of this process. Returns false when the hold has to be released in the store.
   */
  handOff(hold: Hold): boolean;
  /** The release has been sent: later requests reach the store after it. */
  releaseSent(): void;
  /**
   * The release has ended.
   *
   * @param othersWaiting whether other processes wait for the key; undefined: the release failed
   */
  releaseOver(othersWaiting: boolean | undefined): void;
  /** The hold was lost, or was granted after its caller gave up. */
  leave(): void;
}

/** Rest of a process's hand-off batch: how many more leases have tokens, and until when it lasts. */
export interface HandOffBatch {
  leasesLeft: number;
  /** Token of the next lease; undefined without fencing. */
  nextToken: number | undefined;
  readonly until: number;
}

/** The caller that a hold was granted to. */
export interface HoldCaller {
  /** Key as the caller wrote it. */
  readonly key: string;
  /** Label of its call. */
  readonly label: string;
}

/** Terms of the store's grant. */
export interface Granted extends GrantedTime {
  readonly token: number | undefined;
  /** Signal that aborts when the store itself detects that the hold is gone. */
  readonly lost?: AbortSignal | undefined;
  readonly grantedBy?: readonly string[] | undefined;
  readonly owner?: string | undefined;
}

/**
 * One owner's hold in the store, as far as this process knows, for one lease. After that lease the owner's hold can be
 * handed off to another lease, with a successor of this object. Only this file changes its state, except `isSlow`.
 * {@link TimeInStore} says until when the store has it. Successors share the rest of the hand-off batch, which
 * `handedOffFrom` changes.
 */
export class Hold {
  private current: HoldState = 'held';
  private reason: LossReason | undefined;
  private watchdog: number | undefined;
  private claimed: Claim;
  private storeOwner: string;
  private fencingToken: number | undefined;
  private keptUntil = 0;
  private lengthened = false;
  /** Extensions that leases requested: for each part, until when. */
  private demands: Map<object, number> | undefined;
  private ownUntil: number;
  private ownBatch: HandOffBatch | undefined;
  private leaseCount = 1;
  readonly reported = new ReportedLeases();
  private joinableUntil: number | undefined;
  private lossHandler: ((hold: Hold) => void) | undefined;
  private lossListeners: Set<() => void> | undefined;
  /** Key as the caller wrote it. */
  readonly key: string;
  private readonly grantedTo: string;
  readonly grantedAt: number;
  /** When `maxHoldMs` of its caller is over; no extension moves it. */
  private limitAt: number | undefined;
  /** Whether the event `slow-hold` was emitted. */
  isSlow = false;
  /** Kind of lock that the caller requested; see {@link downgraded}. */
  readonly takenAs: LockKind;
  /** Signal that aborts when the store itself detects that the hold is gone. */
  readonly lost: AbortSignal | undefined;
  readonly grantedBy: readonly string[] | undefined;
  readonly inStore: TimeInStore;

  constructor(
    caller: HoldCaller,
    private currentEndListener: HoldEndListener,
    claim: Claim,
    watchdogMs: number | undefined,
    granted: Granted,
  ) {
    this.key = caller.key;
    this.grantedTo = caller.label;
    this.claimed = claim;
    this.takenAs = claim.kind;
    this.watchdog = watchdogMs;
    this.fencingToken = granted.token;
    this.grantedAt = granted.grantedAt;
    this.lost = granted.lost;
    this.grantedBy = granted.grantedBy;
    this.storeOwner = granted.owner ?? claim.owner;
    this.inStore = new TimeInStore(granted, this.countsForMs(granted.validForMs, granted.session));
    this.ownUntil = this.inStore.leaseUntil;
  }

  get endListener(): HoldEndListener {
    return this.currentEndListener;
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

  /** Name of its owner in the store. */
  get owner(): string {
    return this.storeOwner;
  }

  get token(): number | undefined {
    return this.fencingToken;
  }

  /** Lease that the watchdog renews, in ms; undefined for a fixed lease. */
  get watchdogMs(): number | undefined {
    return this.watchdog;
  }

  /** Lease that has to be renewed in the store, in ms. The store keeps a session by itself. */
  get renewedLeaseMs(): number | undefined {
    return this.session ? undefined : this.watchdog;
  }

  /** The session that the hold ends with; undefined for a hold with a time to live of its own. */
  get session(): Session | undefined {
    return this.inStore.session;
  }

  /** Until when its holder may rely on it, on the runtime's clock. */
  get validUntil(): number {
    const { validUntil } = this.inStore;
    return this.limitAt === undefined ? validUntil : Math.min(validUntil, this.limitAt);
  }

  /** Returns the reason of the loss if its time is over; undefined while it is valid. */
  overBy(now: number): 'expired' | 'overdue' | undefined {
    if (now >= this.inStore.validUntil) return 'expired';
    return now >= (this.limitAt ?? Infinity) ? 'overdue' : undefined;
  }

  /** Until when it stays in the store, however early the work ends. */
  get keepUntil(): number {
    return this.keptUntil;
  }

  /** Hand-off batch; set by the caller that acquired the hold from the store. */
  get batch(): HandOffBatch | undefined {
    return this.ownBatch;
  }

  /** Time of the next request about this hold outside the watchdog's rounds; `Infinity` if the rounds suffice. */
  get requestAgainAt(): number {
    return this.inStore.requestAgainAt(this.renewedLeaseMs);
  }

  /** Returns how long a grant counts, in ms. In a session only a fixed lease ends by itself. */
  private countsForMs(validForMs: number, session: Session | undefined): number {
    if (!session) return validForMs;
    return this.watchdog === undefined ? this.claimed.leaseMs : Infinity;
  }

  /** Sets the callback for a loss, now that the hold has a holder. */
  heldWith(lossHandler: (hold: Hold) => void): void {
    this.lossHandler = lossHandler;
  }

  beginBatch(batch: HandOffBatch): void {
    this.ownBatch = batch;
  }

  /** Lets other leases of the process join the hold until `until`. */
  beginSharing(until: number): void {
    this.joinableUntil = until;
  }

  /** Label of the call that has it; of a shared hold, of one of them. */
  get label(): string {
    return this.reported.label ?? this.grantedTo;
  }

  /**
   * Adds a lease if it may share the hold: only a renewed one with the same length, and only while the store certainly
   * has the hold as it was acquired. Returns whether it was added.
   */
  addLease(watchdogMs: number, now: number): boolean {
    const mayJoin =
      now < (this.joinableUntil ?? -Infinity) && this.watchdog === watchdogMs && this.keptUntil <= now;
    if (!mayJoin || !this.isSound(now)) return false;
    this.leaseCount += 1;
    return true;
  }

  /** Removes a lease. Returns true when other leases still have the hold. */
  dropLease(): boolean {
    this.leaseCount -= 1;
    return this.leaseCount > 0;
  }

  /** Records that the part's lease requests more than the lease length. No other lease may inherit that. */
  lengthenedBy(part: object, until: number): void {
    this.lengthened = true;
    this.demands ??= new Map();
    this.demands.set(part, Math.max(until, this.demands.get(part) ?? 0));
  }

  /**
   * Forgets the request of a part whose lease has ended. Returns true when it had requested more than the lease length.
   */
  dropsDemand(part: object): boolean {
    return this.demands?.delete(part) ?? false;
  }

  /** Returns how long its leases want it from now on, in ms; undefined unless the store may keep it longer. */
  wantedMs(now: number): number | undefined {
    if (this.current !== 'held' || now >= this.validUntil) return undefined;
    const { watchdog, ownUntil, claimed } = this;
    if (this.session && watchdog !== undefined) return undefined;
    const own = watchdog === undefined && ownUntil > now ? ownUntil : now + (watchdog ?? claimed.leaseMs);
    const until = Math.max(own, this.keptUntil, ...(this.demands?.values() ?? []));
    return this.inStore.mayLastUntil > until ? Math.ceil(until - now) : undefined;
  }

  /** Makes its lease a fixed one, because a renewal would extend it again. */
  stopRenewing(): void {
    this.watchdog = undefined;
  }

  /** Applies a reacquisition: the store set the claim's lease again, and returned a new token. */
  reacquired(claim: Claim, granted: Granted): void {
    this.claimed = claim;
    this.storeOwner = granted.owner ?? claim.owner;
    this.fencingToken = granted.token;
    this.inStore.reacquired(granted.sentAt, this.countsForMs(granted.validForMs, this.session));
    this.ownUntil = this.inStore.leaseUntil;
    this.inStore.mayLast(granted.grantedAt + granted.validForMs);
  }

  /**
   * Applies a downgrade: its owner has another kind of lock from now on. It is not handed off any more, and has no
   * token.
   */
  downgraded(claim: Claim, endListener: HoldEndListener): void {
    this.claimed = claim;
    this.currentEndListener = endListener;
    this.fencingToken = undefined;
    this.ownBatch = undefined;
  }

  /** Ends it for its holder at `limitAt`, however long the store keeps it. */
  limitTo(limitAt: number): void {
    this.limitAt = limitAt;
  }

  /** Keeps it in the store until `until`, whenever the work ends. */
  keepAtLeastUntil(until: number): void {
    this.keptUntil = Math.max(this.keptUntil, until);
  }

  /** Returns true when the store certainly has it as it was acquired, for long enough, and its holder has not extended it. */
  isSound(now: number): boolean {
    return this.current === 'held' && !this.lengthened && this.inStore.isSound(now, this.claimed.leaseMs);
  }

  /** Returns the same hold for the next lease: with its own token and label, and without limit and listeners. */
  successor(token: number | undefined, grantedAt: number, { label }: HoldCaller): Hold {
    const { key, endListener, claimed, watchdog, session, lost, grantedBy, owner, inStore } = this;
    const { confirmedFrom: sentAt, validForMs } = inStore;
    const granted = { token, grantedAt, sentAt, validForMs, session, lost, grantedBy, owner };
    const next = new Hold({ key, label }, endListener, claimed, watchdog, granted);
    next.inStore.continues(inStore);
    next.ownBatch = this.ownBatch;
    return next;
  }

  /** Returns how long it still has to stay in the store, in ms; undefined when it may be released now. */
  keepForMs(now: number): number | undefined {
    return this.keptUntil > now ? Math.ceil(this.keptUntil - now) : undefined;
  }

  release(): void {
    this.current = 'released';
  }

  /** Applies a release whose reply said that the hold was gone. Its holder gets that as the result. */
  wasGone(reason: LossReason): void {
    this.current = 'lost';
    this.reason = reason;
  }

  /** Registers a listener for the loss; returns a function that removes it. */
  onLoss(listener: () => void): () => void {
    const listeners = (this.lossListeners ??= new Set());
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Marks the hold as lost, and notifies its listeners once. */
  lose(reason: LossReason): void {
    if (this.current !== 'held') return;
    this.current = 'lost';
    this.reason = reason;
    this.lossHandler?.(this);
    for (const listener of [...(this.lossListeners ?? [])]) listener();
  }
}
