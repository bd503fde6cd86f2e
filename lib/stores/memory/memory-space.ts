import type { AcquireReply, Claim, ExtendReply, HoldInfo, ReleaseReply } from '../../core/seam/claim.js';
import { checkFunction } from '../../core/settings/option-checks.js';
import { StoreFailure } from '../../core/seam/lock-store.js';

/** Clocks of a {@link MemorySpace}. */
export interface MemorySpaceOptions {
  /** A clock that never goes back, in ms; leases are measured with it. Default: `performance.now()`. */
  readonly now?: () => number;
  /** The wall clock in µs; fencing tokens start from it. Default: `Date.now()` times 1,000. */
  readonly wallClockMicros?: () => number;
}

/** One watcher of one key. `process` tells the watchers of one store instance from those of the others. */
export interface Subscription {
  readonly process: object;
  readonly notify: () => void;
}

interface Hold {
  readonly owner: string;
  readonly since: number;
  readonly leaseMs: number;
}

// Not "end minus now": rounding in that sum can make what is left more than the lease.
const left = (hold: Hold, now: number): number => hold.leaseMs - (now - hold.since);

/** Expired holds are swept when the map has grown to this size, or to twice what the last sweep left. */
const FIRST_SWEEP_AT = 64;

/**
 * What the Redis server is to the Redis store: the holds, the watchers and the last fencing token. Stores that
 * share one space behave towards each other like processes that share one Redis.
 *
 * There are no timers in it. A lease ends because whoever looks next sees that its time is over, so the space
 * works under fake timers and keeps no process alive.
 */
export class MemorySpace {
  private readonly now: () => number;
  private readonly wallClockMicros: () => number;
  private readonly holds = new Map<string, Hold>();
  private readonly subscriptions = new Map<string, Set<Subscription>>();
  // One series for all keys: it grows for each of them, and needs no memory per key.
  private lastToken = 0;
  private sweepAt = FIRST_SWEEP_AT;

  constructor(options: MemorySpaceOptions = {}) {
    // Looked up at each call, because fake timers replace them.
    this.now = checkFunction('now', options.now) ?? (() => performance.now());
    this.wallClockMicros =
      checkFunction('wallClockMicros', options.wallClockMicros) ?? (() => Date.now() * 1_000);
  }

  /** What is kept at this moment: holds whose lease runs, and watched subscriptions. */
  get size(): { readonly holds: number; readonly watches: number } {
    this.sweep();
    let watches = 0;
    for (const ofKey of this.subscriptions.values()) watches += ofKey.size;
    return { holds: this.holds.size, watches };
  }

  /** See `LockStore.acquire`. */
  acquire({ key, owner, leaseMs, fenceBlock, rearms }: Claim): AcquireReply {
    const now = this.now();
    const hold = this.find(key, now);
    // Rounded up: looking again a fraction of a millisecond early would find the hold still there.
    if (hold && hold.owner !== owner) return { status: 'taken', retryInMs: Math.ceil(left(hold, now)) };
    const token = fenceBlock > 0 ? this.reserveTokens(fenceBlock, key) : undefined;
    if (!hold && this.holds.size >= this.sweepAt) this.sweep();
    this.holds.set(key, { owner, since: now, leaseMs });
    if (rearms && hold && left(hold, now) > leaseMs) this.notify(key);
    return { status: 'granted', validForMs: leaseMs, ...(token === undefined ? {} : { token }) };
  }

  /** See `LockStore.extendMany`; here for one claim. */
  extend({ key, owner, leaseMs }: Claim): ExtendReply {
    const now = this.now();
    const hold = this.find(key, now);
    if (hold?.owner !== owner) return { status: 'lost' };
    const remainingMs = left(hold, now);
    if (remainingMs >= leaseMs) return { status: 'held', validForMs: remainingMs };
    this.holds.set(key, { owner, since: now, leaseMs });
    return { status: 'held', validForMs: leaseMs };
  }

  /** See `LockStore.release`. `process` is the store instance that asks: its own watchers are not "others". */
  release({ key, owner }: Claim, process: object, keepForMs?: number): ReleaseReply {
    const now = this.now();
    if (this.find(key, now)?.owner !== owner)
      return { wasHeld: false, othersWaiting: this.othersWatch(key, process) };
    if (keepForMs === undefined) this.holds.delete(key);
    else this.holds.set(key, { owner, since: now, leaseMs: keepForMs });
    this.notify(key);
    return { wasHeld: true, othersWaiting: this.othersWatch(key, process) };
  }

  /** See `LockStore.inspect`. */
  inspect(key: string): HoldInfo | null {
    const now = this.now();
    const hold = this.find(key, now);
    return hold ? { owner: hold.owner, count: 1, remainingMs: left(hold, now) } : null;
  }

  /** See `LockStore.forceUnlock`. */
  forceUnlock(key: string): boolean {
    if (!this.find(key)) return false;
    this.holds.delete(key);
    this.notify(key);
    return true;
  }

  /** Registers a watcher of the key and returns what takes it away again. */
  subscribe(key: string, subscription: Subscription): () => void {
    const ofKey = this.subscriptions.get(key) ?? new Set();
    this.subscriptions.set(key, ofKey.add(subscription));
    return () => {
      ofKey.delete(subscription);
      if (ofKey.size === 0 && this.subscriptions.get(key) === ofKey) this.subscriptions.delete(key);
    };
  }

  private find(key: string, now = this.now()): Hold | undefined {
    const hold = this.holds.get(key);
    if (!hold || left(hold, now) > 0) return hold;
    this.holds.delete(key);
    return undefined;
  }

  private reserveTokens(block: number, key: string): number {
    const first = Math.max(this.lastToken + 1, Math.floor(this.wallClockMicros()));
    // Without the brackets the sum could leave the exact integers and come back rounded.
    const last = first + (block - 1);
    if (!Number.isSafeInteger(last)) {
      throw new StoreFailure(
        `No fencing token can be given for '${key}': ${String(last)} is not an exact integer. ` +
          'The wall clock of the memory store is far in the future, or does not answer a number.',
        'not-executed',
      );
    }
    this.lastToken = last;
    return first;
  }

  private notify(key: string): void {
    for (const subscription of this.subscriptions.get(key) ?? []) subscription.notify();
  }

  private othersWatch(key: string, process: object): boolean {
    for (const subscription of this.subscriptions.get(key) ?? []) {
      if (subscription.process !== process) return true;
    }
    return false;
  }

  private sweep(): void {
    const now = this.now();
    for (const [key, hold] of this.holds) if (left(hold, now) <= 0) this.holds.delete(key);
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.holds.size * 2);
  }
}
