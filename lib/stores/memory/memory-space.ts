import type { ClaimOf } from '../../core/seam/claim.js';
import type { LockKind } from '../../core/kinds/kinds.js';
import type { Grant } from '../../core/seam/grant.js';
import type { KeyState, PermitState } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { checkFunction } from '../../core/settings/option-checks.js';
import { ExclusiveHolds, type TellTurn } from './kinds/exclusive-holds.js';
import type { KindHolds } from './kinds/kind-holds.js';
import { PermitHolds } from './kinds/permit-holds.js';
import { Numbers } from './kinds/numbers.js';
import { ReadWriteHolds } from './kinds/read-write-holds.js';
import type { SpaceClock } from './kinds/space-clock.js';
import { Tokens } from './kinds/tokens.js';

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

/**
 * What the Redis server is to the Redis store: the holds, the watchers and the last fencing token. Stores that
 * share one space behave towards each other like processes that share one Redis.
 *
 * There are no timers in it. A lease ends because the next caller that looks sees that its time is over, so the space
 * works under fake timers and keeps no process alive.
 */
export class MemorySpace {
  private readonly kinds: { readonly [K in LockKind]: KindHolds<ClaimOf<K>> };
  private readonly permitHolds: PermitHolds;
  /** @internal What semaphores and latches are: as in Redis, the same for both. */
  readonly numbers: Numbers;
  private readonly subscriptions = new Map<string, Set<Subscription>>();
  /** Who hears of its turn, by owner. */
  private readonly waiting = new Map<string, (grant: Grant) => void>();
  /** @internal How owners are told of their turn, where not each of them listens here: see {@link hear}. */
  tellTurn: TellTurn = (owner, grant) => {
    const listener = this.waiting.get(owner);
    listener?.(grant);
    return listener !== undefined;
  };

  constructor(options: MemorySpaceOptions = {}) {
    const clock: SpaceClock = {
      // Looked up at each call, because fake timers replace them.
      now: checkFunction('now', options.now) ?? (() => performance.now()),
      wallClockMicros:
        checkFunction('wallClockMicros', options.wallClockMicros) ?? (() => Date.now() * 1_000),
    };
    const notify = (finalKey: string): void => this.notify(finalKey);
    const tell: TellTurn = (...turn) => this.tellTurn(...turn);
    this.numbers = new Numbers(notify, (finalKey) => this.kindAt(finalKey));
    const tokens = new Tokens(clock);
    const withOneOwner: ExclusiveHolds = new ExclusiveHolds(clock, notify, tell, tokens, (finalKey) =>
      readWrite.inTheWay(finalKey),
    );
    const readWrite: ReadWriteHolds = new ReadWriteHolds(clock, notify, tokens, (finalKey) =>
      withOneOwner.inTheWay(finalKey),
    );
    this.permitHolds = new PermitHolds(clock, notify);
    this.kinds = {
      exclusive: withOneOwner,
      fair: withOneOwner,
      permit: this.permitHolds,
      read: readWrite,
      write: readWrite,
    };
  }

  /** What is kept at this moment: holds whose lease runs, and watched subscriptions. */
  get size(): { readonly holds: number; readonly watches: number } {
    let [holds, watches] = [0, 0];
    for (const kind of this.allHolds) holds += kind.size;
    for (const ofKey of this.subscriptions.values()) watches += ofKey.size;
    return { holds, watches };
  }

  /** Each once: two kinds may be kept together. */
  private get allHolds(): readonly KindHolds<never>[] {
    return [...new Set<KindHolds<never>>(Object.values(this.kinds))];
  }

  /** @internal The holds of one kind. */
  of<K extends LockKind>(kind: K): KindHolds<ClaimOf<K>> {
    return this.kinds[kind];
  }

  /**
   * @internal The same, to take a key. One of which there are permits is no lock, and the other way round: that is refused, as a
   * value of another type is in Redis. Locks of other kinds are in the way of each other.
   */
  toTake<K extends LockKind>(kind: K, finalKey: string): KindHolds<ClaimOf<K>> {
    const there = this.kindAt(finalKey, kind);
    if (there !== undefined) {
      throw new StoreFailure(
        `"${finalKey}" is held as a lock of another kind (${there}), so it cannot be one of the kind ${kind}`,
        'not-executed',
        { keyOnly: true },
      );
    }
    this.numbers.refuse(finalKey, kind);
    return this.kinds[kind];
  }

  /** The kind of lock that has the key; `wanted`: only one for which a claim of that kind cannot wait. */
  private kindAt(finalKey: string, wanted?: LockKind): LockKind | undefined {
    for (const name in this.kinds) {
      const kind = name as LockKind;
      if (wanted && this.areLocks(kind, wanted)) continue;
      if (this.kinds[kind].has(finalKey)) return kind;
    }
    return undefined;
  }

  /** Whether they are in the way of each other, or the same. */
  private areLocks(one: LockKind, other: LockKind): boolean {
    const kinds: readonly KindHolds<never>[] = [this.kinds[one], this.kinds[other]];
    return kinds[0] === kinds[1] || kinds.every((kind) => 'inTheWay' in kind);
  }

  /** @internal See `LockStore.inspect`. */
  inspect(finalKey: string): KeyState | null {
    for (const kind of this.allHolds) if (kind.has(finalKey)) return kind.inspect(finalKey);
    return null;
  }

  /** @internal See `LockStore.permits`. */
  permits(finalKey: string): PermitState | null {
    this.toTake('permit', finalKey);
    return this.permitHolds.state(finalKey);
  }

  /** @internal See `LockStore.forceUnlock`. */
  forceUnlock(finalKey: string): boolean {
    return this.allHolds.some((kind) => kind.forceUnlock(finalKey));
  }

  /** @internal Tells an owner that waits when the key is its own. The returned function ends that. */
  hear(owner: string, listener: (grant: Grant) => void): () => void {
    this.waiting.set(owner, listener);
    return () => this.waiting.delete(owner);
  }

  /** @internal Registers a watcher of the key and returns what takes it away again. */
  subscribe(finalKey: string, subscription: Subscription): () => void {
    const ofKey = this.subscriptions.get(finalKey) ?? new Set();
    this.subscriptions.set(finalKey, ofKey.add(subscription));
    return () => {
      ofKey.delete(subscription);
      if (ofKey.size === 0 && this.subscriptions.get(finalKey) === ofKey) this.subscriptions.delete(finalKey);
    };
  }

  /** @internal Whether somebody else than this store instance waits for the key. */
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
