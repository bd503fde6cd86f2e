import type { Claim, ClaimOf } from '../../core/seam/claim.js';
import type { LockKind } from '../../core/kinds/kinds.js';
import type { AcquireReply, ExtendReply, KeyState } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { checkFunction } from '../../core/settings/option-checks.js';
import { ExclusiveHolds } from './kinds/exclusive-holds.js';
import { PermitHolds } from './kinds/permit-holds.js';
import type { SpaceClock } from './kinds/space-clock.js';

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

/** What a space keeps of one kind. */
export interface KindHolds<C extends Claim = Claim> {
  /** How many holds there are at this moment. */
  readonly size: number;
  has(finalKey: string): boolean;
  acquire(claim: C): AcquireReply;
  extend(claim: C): ExtendReply;
  release(claim: C, keepForMs?: number): boolean;
  inspect(finalKey: string): KeyState | null;
  forceUnlock(finalKey: string): boolean;
}

/**
 * What the Redis server is to the Redis store: the holds, the watchers and the last fencing token. Stores that
 * share one space behave towards each other like processes that share one Redis.
 *
 * There are no timers in it. A lease ends because the next caller that looks sees that its time is over, so the space
 * works under fake timers and keeps no process alive.
 */
export class MemorySpace {
  private readonly kinds: { readonly [K in LockKind]: KindHolds<ClaimOf<K>> };
  private readonly subscriptions = new Map<string, Set<Subscription>>();

  constructor(options: MemorySpaceOptions = {}) {
    const clock: SpaceClock = {
      // Looked up at each call, because fake timers replace them.
      now: checkFunction('now', options.now) ?? (() => performance.now()),
      wallClockMicros:
        checkFunction('wallClockMicros', options.wallClockMicros) ?? (() => Date.now() * 1_000),
    };
    const notify = (finalKey: string): void => this.notify(finalKey);
    this.kinds = { exclusive: new ExclusiveHolds(clock, notify), permit: new PermitHolds(clock, notify) };
  }

  /** What is kept at this moment: holds whose lease runs, and watched subscriptions. */
  get size(): { readonly holds: number; readonly watches: number } {
    let [holds, watches] = [0, 0];
    for (const kind of Object.values(this.kinds)) holds += kind.size;
    for (const ofKey of this.subscriptions.values()) watches += ofKey.size;
    return { holds, watches };
  }

  /** The holds of one kind. */
  of<K extends LockKind>(kind: K): KindHolds<ClaimOf<K>> {
    return this.kinds[kind];
  }

  /** The same, to take a key. One that another kind has is refused, as a value of another type is in Redis. */
  toTake<K extends LockKind>(kind: K, finalKey: string): KindHolds<ClaimOf<K>> {
    for (const name in this.kinds) {
      if (name === kind || !this.kinds[name as LockKind].has(finalKey)) continue;
      throw new StoreFailure(
        `"${finalKey}" is held as a lock of another kind (${name}), so it cannot be one of the kind ${kind}`,
        'not-executed',
        { keyOnly: true },
      );
    }
    return this.kinds[kind];
  }

  /** See `LockStore.inspect`. */
  inspect(finalKey: string): KeyState | null {
    for (const kind of Object.values(this.kinds)) if (kind.has(finalKey)) return kind.inspect(finalKey);
    return null;
  }

  /** See `LockStore.forceUnlock`. */
  forceUnlock(finalKey: string): boolean {
    return Object.values(this.kinds).some((kind) => kind.forceUnlock(finalKey));
  }

  /** Registers a watcher of the key and returns what takes it away again. */
  subscribe(finalKey: string, subscription: Subscription): () => void {
    const ofKey = this.subscriptions.get(finalKey) ?? new Set();
    this.subscriptions.set(finalKey, ofKey.add(subscription));
    return () => {
      ofKey.delete(subscription);
      if (ofKey.size === 0 && this.subscriptions.get(finalKey) === ofKey) this.subscriptions.delete(finalKey);
    };
  }

  /** Whether somebody else than this store instance waits for the key. */
  othersWatch(finalKey: string, process: object): boolean {
    for (const subscription of this.subscriptions.get(finalKey) ?? []) {
      if (subscription.process !== process) return true;
    }
    return false;
  }

  private notify(finalKey: string): void {
    for (const subscription of this.subscriptions.get(finalKey) ?? []) subscription.notify();
  }
}
