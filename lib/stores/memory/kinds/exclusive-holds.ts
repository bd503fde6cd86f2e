import type { Grant } from '../../../core/seam/grant.js';
import type {
  ExtendReply,
  KeyState,
  QueueEntryReply,
  QueuePosition,
  Taken,
} from '../../../core/seam/reply.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { KindHolds, SpaceReply, Tokens } from './kind-holds.js';
import { WaitQueue, type OneOwnerClaim } from './wait-queue.js';
import { FIRST_SWEEP_AT, left, type Blocker, type SpaceClock, type Timed } from './space-clock.js';

interface Hold extends Timed {
  readonly owner: string;
  readonly kind: OneOwnerClaim['kind'];
}

/** The hold of a key: an exclusive or fair one, or one of another kind, whose owner does not matter here. */
type Blocking = Hold | (Blocker & { readonly owner: undefined });

/** Returns the reply about a blocking hold. Rounded up: a fraction of a ms too early the hold would still be there. */
const blockedBy = (hold: Blocking | undefined, now: number): Omit<QueuePosition, 'position'> => ({
  retryInMs: hold ? Math.ceil(left(hold, now)) : 0,
  ...(hold && hold.owner === undefined && { heldAs: hold.kind }),
});

const taken = (hold: Blocking | undefined, now: number): Taken => ({
  status: 'taken',
  ...blockedBy(hold, now),
});

/** Notifies a waiter of its grant. Returns false when no process received it. */
export type NotifyGrant = (owner: string, grant: Grant) => boolean;

/**
 * The exclusive and fair holds of a memory space, like the hashes and scripts of these locks in Redis. Waiters for
 * either kind share one wait queue.
 */
export class ExclusiveHolds implements KindHolds<OneOwnerClaim> {
  private readonly holds = new Map<string, Hold>();
  /** Wait queues by key. A key has one only while it has waiters. */
  private readonly queues = new Map<string, WaitQueue<OneOwnerClaim>>();
  private sweepAt = FIRST_SWEEP_AT;

  /**  @param otherKind returns the blocking hold of another kind of lock */
  constructor(
    private readonly clock: SpaceClock,
    private readonly notify: (finalKey: string) => void,
    private readonly notifyOwner: NotifyGrant,
    private readonly tokens: Tokens,
    private readonly otherKind: (finalKey: string) => Blocker | undefined,
  ) {}

  get size(): number {
    this.sweep();
    return this.holds.size;
  }

  has(finalKey: string): boolean {
    return this.find(finalKey) !== undefined;
  }

  names(): Iterable<string> {
    return [...this.holds.keys(), ...this.queues.keys()];
  }

  /** Returns the hold that a lock of another kind has to wait for. */
  blocker(finalKey: string): Blocker | undefined {
    return this.find(finalKey);
  }

  /** See `KindStore.acquire`. No owner overtakes: while owners wait, the key goes to the first of them. */
  acquire(claim: OneOwnerClaim): SpaceReply {
    const { finalKey, owner } = claim;
    const now = this.clock.now();
    const hold = this.blocking(finalKey, now);
    if (hold?.owner === owner) return this.reacquire(claim, hold, now);
    const waits = claim.waits && claim.entryTerms !== undefined;
    const queue = this.queueOf(finalKey);
    if (!hold && !queue) return this.take(claim, now);
    if (!waits && (hold || !queue)) return taken(hold, now);
    const joined = queue ?? new WaitQueue<OneOwnerClaim>();
    if (waits) {
      joined.add(claim);
      this.queues.set(finalKey, joined);
    }
    if (!hold) this.serve(finalKey, now, owner);
    const blocker = this.blocking(finalKey, now);
    if (blocker?.owner === owner) return this.reacquire(claim, blocker, now);
    if (!waits) return taken(blocker, now);
    return { status: 'queued', ...joined.positionOf(owner, blockedBy(blocker, now)) };
  }

  /** See `KindStore.refreshEntries`; for one claim. */
  keep({ finalKey, owner }: OneOwnerClaim): QueueEntryReply {
    const now = this.clock.now();
    const queue = this.queueOf(finalKey);
    if (queue?.has(owner) && !this.blocking(finalKey, now)) this.serve(finalKey, now, owner);
    const hold = this.blocking(finalKey, now);
    if (hold?.owner === owner) return { status: 'held' };
    if (!queue?.has(owner)) return { status: 'gone' };
    return { status: 'queued', ...queue.positionOf(owner, blockedBy(hold, now)) };
  }

  /** See `KindStore.extendMany`; for one claim. */
  extend({ kind, finalKey, owner, leaseMs }: OneOwnerClaim): ExtendReply {
    const now = this.clock.now();
    const hold = this.find(finalKey, now);
    if (hold?.owner !== owner) return { status: 'lost' };
    const remainingMs = left(hold, now);
    if (remainingMs >= leaseMs) return { status: 'held', validForMs: remainingMs };
    this.holds.set(finalKey, { kind, owner, since: now, leaseMs });
    return { status: 'held', validForMs: leaseMs };
  }

  /** See `NodeKind.commit`. */
  commit(claim: OneOwnerClaim, token: number): boolean {
    if (this.find(claim.finalKey)?.owner !== claim.owner) return false;
    this.tokens.raise(claim, token);
    return true;
  }

  /** See `KindStore.release`. Removes a waiting owner from the queue. Returns whether the owner had the key. */
  release({ kind, finalKey, owner }: OneOwnerClaim, keepForMs?: number): boolean {
    const now = this.clock.now();
    const stood = this.queues.get(finalKey)?.remove(owner) ?? false;
    const hold = this.blocking(finalKey, now);
    const held = hold?.owner === owner;
    if (held && keepForMs !== undefined) {
      this.holds.set(finalKey, { kind, owner, since: now, leaseMs: keepForMs });
      this.notify(finalKey);
      return true;
    }
    if (held) this.holds.delete(finalKey);
    if (held || (stood && !hold)) this.serveOrNotify(finalKey, now);
    else if (stood) this.queueOf(finalKey);
    return held;
  }

  /** See `LockStore.inspect`. */
  inspect(finalKey: string): KeyState | null {
    const now = this.clock.now();
    const hold = this.find(finalKey, now);
    const [...claims] = this.queueOf(finalKey)?.claims ?? [];
    const kind = (hold ?? claims[0])?.kind;
    if (!kind) return null;
    const holders = hold ? [{ owner: hold.owner, count: 1, remainingMs: left(hold, now) }] : [];
    return { kind, holders, waiting: claims.map(({ owner }) => owner) };
  }

  /** See `LockStore.forceUnlock`. */
  forceUnlock(finalKey: string): boolean {
    const now = this.clock.now();
    if (!this.find(finalKey, now)) return false;
    this.holds.delete(finalKey);
    // The holder is notified, too, and looks.
    this.notify(finalKey);
    this.serve(finalKey, now);
    return true;
  }

  private take(claim: OneOwnerClaim, now: number): Grant {
    const { kind, finalKey, owner, leaseMs, tokens } = claim;
    const token = tokens > 0 ? this.tokens.reserve(claim) : undefined;
    if (this.holds.size >= this.sweepAt) this.sweep();
    this.holds.set(finalKey, { kind, owner, since: now, leaseMs });
    return { status: 'granted', validForMs: leaseMs, ...(token !== undefined && { token, tokens }) };
  }

  /** Grants a key. For lack of a token, only an asking caller fails: the next owner gets that failure when it asks. */
  private tryTake(claim: OneOwnerClaim, now: number, isRequesting: boolean): Grant | undefined {
    try {
      return this.take(claim, now);
    } catch (failure) {
      if (isRequesting || !(failure instanceof StoreFailure)) throw failure;
      return undefined;
    }
  }

  private reacquire(claim: OneOwnerClaim, hold: Hold, now: number): Grant {
    const grant = this.take(claim, now);
    if (claim.reacquires && left(hold, now) > claim.leaseMs) this.notify(claim.finalKey);
    return grant;
  }

  /** Grants a free key to the first waiter that is notified, `requesting` by the reply. Returns whether one got it. */
  private serve(finalKey: string, now: number, requesting?: string): boolean {
    const queue = this.queueOf(finalKey);
    for (const claim of queue?.claims ?? []) {
      const { provisionalLeaseMs, tokens } = claim.entryTerms!;
      const requested = { ...claim, leaseMs: provisionalLeaseMs, tokens };
      const grant = this.tryTake(requested, now, claim.owner === requesting);
      if (!grant) return false;
      const waiting = queue!.length - 1;
      if (claim.owner === requesting || this.notifyOwner(claim.owner, { ...grant, waiting })) {
        queue!.remove(claim.owner);
        this.queueOf(finalKey);
        return true;
      }
      this.holds.delete(finalKey);
    }
    return false;
  }

  private serveOrNotify(finalKey: string, now: number): void {
    if (!this.serve(finalKey, now)) this.notify(finalKey);
  }

  /** Returns the wait queue; undefined when there are no waiters. */
  private queueOf(finalKey: string): WaitQueue<OneOwnerClaim> | undefined {
    const queue = this.queues.get(finalKey);
    if (queue?.length !== 0) return queue;
    this.queues.delete(finalKey);
    return undefined;
  }

  /** Returns the hold of the key, of any kind. */
  private blocking(finalKey: string, now: number): Blocking | undefined {
    const own = this.find(finalKey, now);
    if (own) return own;
    const other = this.otherKind(finalKey);
    return other && { ...other, owner: undefined };
  }

  private find(finalKey: string, now = this.clock.now()): Hold | undefined {
    const hold = this.holds.get(finalKey);
    if (!hold || left(hold, now) > 0) return hold;
    this.holds.delete(finalKey);
    return undefined;
  }

  private sweep(): void {
    const now = this.clock.now();
    for (const [finalKey, hold] of this.holds) if (left(hold, now) <= 0) this.holds.delete(finalKey);
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.holds.size * 2);
  }
}
