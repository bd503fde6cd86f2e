import type { ClaimOf } from '../../core/seam/claim.js';
import type { LockKind } from '../../core/kinds/kinds.js';
import type { Grant } from '../../core/seam/grant.js';
import { heldState, type KeyState, type PermitState } from '../../core/seam/reply.js';
import { printsOnly } from '../../core/util/printing.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { checkFunction, checkObject } from '../../core/settings/option-checks.js';
import { checkNames, type Names } from '../../core/settings/option-names.js';
import { ExclusiveHolds, type NotifyGrant } from './kinds/exclusive-holds.js';
import { type KindHolds, Tokens } from './kinds/kind-holds.js';
import { NoteSpace } from './memory-notes.js';
import { PermitHolds } from './kinds/permit-holds.js';
import { Numbers } from './kinds/numbers.js';
import { ReadWriteHolds } from './kinds/read-write-holds.js';
import type { SpaceClock } from './kinds/space-clock.js';

/** Clocks of a {@link MemorySpace}. */
export interface MemorySpaceOptions {
  /** A clock that never goes back, in ms; it measures leases. Default: `performance.now()`. */
  readonly now?: (() => number) | undefined;
  /** The wall clock in µs; fencing tokens start from it. Default: `Date.now()` times 1,000. */
  readonly wallClockMicros?: (() => number) | undefined;
}

export const CLOCKS: Names<MemorySpaceOptions> = { now: true, wallClockMicros: true };

/** One watcher of one key. `process` distinguishes the watchers of one store instance from the others. */
export interface Subscription {
  readonly process: object;
  readonly notify: () => void;
}

/**
 * The shared state of memory stores, as a Redis server is for Redis stores: holds, watchers and the last fencing token.
 * Stores that share one space behave like processes that share one Redis.
 *
 * It has no timers. A lease expires because the next caller that looks sees that its time is over. So the space works
 * under fake timers and does not keep the process alive.
 */
export class MemorySpace {
  private static count = 0;
  /** @internal Distinguishes it from other spaces of this process. */
  readonly number = (MemorySpace.count += 1);
  private readonly kinds: { readonly [K in LockKind]: KindHolds<ClaimOf<K>> };
  private readonly permitHolds: PermitHolds;
  /** @internal The numbers of semaphores and latches: both share them, as in Redis. */
  readonly numbers: Numbers;
  /** @internal What processes tell each other. */
  readonly notes: NoteSpace;
  private readonly subscriptions = new Map<string, Set<Subscription>>();
  /** Listeners for grants, by owner. */
  private readonly waiting = new Map<string, (grant: Grant) => void>();
  private readonly holderListeners = new Set<(finalKey: string, owner: string) => void>();

  constructor(options: MemorySpaceOptions = {}) {
    checkObject('The options of MemorySpace', 'an object such as { now: () => 0 }', options);
    checkNames(options, 'MemorySpace', CLOCKS);
    const clock: SpaceClock = {
      // Look the clocks up at each call, because fake timers replace them.
      now: checkFunction('now', options.now) ?? (() => performance.now()),
      wallClockMicros:
        checkFunction('wallClockMicros', options.wallClockMicros) ?? (() => Date.now() * 1_000),
    };
    this.notes = new NoteSpace(() => clock.now());
    const notify = (finalKey: string): void => this.notify(finalKey);
    const notifyOwner: NotifyGrant = (owner, grant) => {
      const listener = this.waiting.get(owner);
      listener?.(grant);
      return listener !== undefined;
    };
    this.numbers = new Numbers(notify, (finalKey) => this.kindAt(finalKey));
    const tokens = new Tokens(clock);
    const withOneOwner: ExclusiveHolds = new ExclusiveHolds(clock, notify, notifyOwner, tokens, (finalKey) =>
      readWrite.blocker(finalKey),
    );
    const readWrite: ReadWriteHolds = new ReadWriteHolds(clock, notify, tokens, (finalKey) =>
      withOneOwner.blocker(finalKey),
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

  /** Current number of holds whose lease runs, and of subscriptions. */
  get size(): { readonly holds: number; readonly watches: number } {
    let [holds, watches] = [0, 0];
    for (const kind of this.allHolds) holds += kind.size;
    for (const ofKey of this.subscriptions.values()) watches += ofKey.size;
    return { holds, watches };
  }

  /** Each implementation once: two kinds may share one. */
  private get allHolds(): readonly KindHolds<never>[] {
    return [...new Set<KindHolds<never>>(Object.values(this.kinds))];
  }

  /** @internal The holds of one kind. */
  of<K extends LockKind>(kind: K): KindHolds<ClaimOf<K>> {
    return this.kinds[kind];
  }

  /**
   * @internal Returns the holds of one kind, to acquire a key. Rejects a key with permits for a lock, and the other way
   * round, as Redis rejects another type of value. Locks of different kinds block each other instead.
   */
  toTake<K extends LockKind>(kind: K, finalKey: string): KindHolds<ClaimOf<K>> {
    const there = this.kindAt(finalKey, kind);
    if (there !== undefined) {
      throw new StoreFailure(
        `the key is held as a lock of another kind (${there}), so it cannot be one of the kind ${kind}`,
        'not-executed',
        { keyOnly: true },
      );
    }
    this.numbers.refuse(finalKey, kind);
    return this.kinds[kind];
  }

  /** Returns the kind of lock that has the key. With `wanted`, leaves out kinds that a claim of it can wait for. */
  private kindAt(finalKey: string, wanted?: LockKind): LockKind | undefined {
    for (const name in this.kinds) {
      const kind = name as LockKind;
      if (wanted && this.areLocks(kind, wanted)) continue;
      if (this.kinds[kind].has(finalKey)) return kind;
    }
    return undefined;
  }

  /** Returns whether the kinds block each other, or are the same. */
  private areLocks(one: LockKind, other: LockKind): boolean {
    const kinds: readonly KindHolds<never>[] = [this.kinds[one], this.kinds[other]];
    return kinds[0] === kinds[1] || kinds.every((kind) => 'blocker' in kind);
  }

  /** @internal See `LockStore.inspect`. */
  inspect(finalKey: string): KeyState | null {
    for (const kind of this.allHolds) if (kind.has(finalKey)) return kind.inspect(finalKey);
    return null;
  }

  /** @internal Returns the state of a key for a list: also of one that has only waiters. */
  listed(finalKey: string): KeyState | null {
    const states = this.allHolds.flatMap((kind) => kind.inspect(finalKey) ?? []);
    return states.find(heldState) ?? states[0] ?? null;
  }

  /** @internal Returns the keys that may have a hold or waiters. */
  names(): ReadonlySet<string> {
    return new Set(this.allHolds.flatMap((kind) => [...kind.names()]));
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

  /** @internal See `LockStore.revoke`. */
  revoke(finalKey: string): boolean {
    const { holders = [] } = this.inspect(finalKey) ?? {};
    for (const { owner } of holders) for (const ask of this.holderListeners) ask(finalKey, owner);
    return holders.length > 0;
  }

  /** @internal Calls the listener for each holder that is asked to release. The returned function removes it. */
  onRevocation(listener: (finalKey: string, owner: string) => void): () => void {
    this.holderListeners.add(listener);
    return () => this.holderListeners.delete(listener);
  }

  /** @internal Notifies a waiting owner of its grant. The returned function ends that. */
  onGrant(owner: string, listener: (grant: Grant) => void): () => void {
    this.waiting.set(owner, listener);
    return () => this.waiting.delete(owner);
  }

  /** @internal Registers a watcher of the key. The returned function removes it. */
  subscribe(finalKey: string, subscription: Subscription): () => void {
    const ofKey = this.subscriptions.get(finalKey) ?? new Set();
    this.subscriptions.set(finalKey, ofKey.add(subscription));
    return () => {
      ofKey.delete(subscription);
      if (ofKey.size === 0 && this.subscriptions.get(finalKey) === ofKey) this.subscriptions.delete(finalKey);
    };
  }

  /** @internal Returns whether another store instance than this one waits for the key. */
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

printsOnly(MemorySpace, ({ number, size }) => ({ number, ...size }));
