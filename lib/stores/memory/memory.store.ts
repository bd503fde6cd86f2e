import type { AllKindStores, LockStore, Watch, WatchListener } from '../../core/seam/lock-store.js';
import { checkStoreKey } from '../key-rule.js';
import type { KeyState, PermitState } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { reading, refuse } from '../../core/settings/option-checks.js';
import { later } from './later.js';
import { MemoryLatches, MemorySemaphores } from './memory-objects.js';
import { MemoryKind, type MemoryHost } from './memory-kind.js';
import { MemorySpace, type MemorySpaceOptions } from './memory-space.js';

/** Either the space of another store, or the clocks of a space of its own. */
export type MemoryStoreOptions =
  (MemorySpaceOptions & { readonly shared?: undefined }) | { readonly shared: MemorySpace };

/**
 * Keeps locks in the memory of this process and behaves at the seam as the Redis store does. For tests and for
 * apps that are one process; it excludes nobody in another process.
 *
 * Two stores with the same `shared` space exclude each other, as two processes on one Redis do:
 *
 * ```ts
 * const space = new MemorySpace();
 * const here = new MemoryStore({ shared: space });
 * const there = new MemoryStore({ shared: space });
 * ```
 *
 * It starts no timers and polls nothing, so it works under fake timers. Install those before the first lock is
 * taken: a clock that is exchanged under a running lease moves the end of that lease.
 *
 * Throws `StoreFailure` after {@link close}, when the wall clock allows no exact fencing token, when the key is
 * something else already, and when nobody has given a number of permits. {@link checkKey} throws `LockKeyError`.
 */
export class MemoryStore implements LockStore {
  readonly kinds: AllKindStores;
  readonly semaphores: MemorySemaphores;
  readonly latches: MemoryLatches;

  /** Where the holds are; hand it to another store as `shared` to simulate a second process. */
  readonly space: MemorySpace;
  private readonly leaveAllLines: () => void;
  private readonly watches = new Set<Watch>();
  private closed = false;

  constructor(options: MemoryStoreOptions = {}) {
    if (typeof options !== 'object' || options === null) refuse('options', 'an object', options);
    this.space = reading('shared', () => {
      const { shared } = options;
      if (shared === undefined) return new MemorySpace(options);
      // Not instanceof: the space may come from the other build.
      return typeof shared.subscribe === 'function' ? shared : refuse('shared', 'a MemorySpace', shared);
    });
    const host: MemoryHost = {
      space: this.space,
      ask: (work) => this.ask(work),
      watch: (finalKey, listener) => this.watch(finalKey, host, listener),
    };
    const kinds = {
      exclusive: new MemoryKind('exclusive', host),
      fair: new MemoryKind('fair', host),
      permit: new MemoryKind('permit', host),
      read: new MemoryKind('read', host),
      write: new MemoryKind('write', host),
    };
    this.kinds = kinds;
    this.semaphores = new MemorySemaphores(host);
    this.latches = new MemoryLatches(host);
    this.leaveAllLines = () => Object.values(kinds).forEach((kind) => kind.leaveAll());
  }

  /** How many running holds and subscriptions the space keeps, those of stores sharing it included. */
  get size(): { readonly holds: number; readonly watches: number } {
    return this.space.size;
  }

  /** Refuses the keys that Redis refuses, although they would work here. */
  checkKey(finalKey: string): void {
    checkStoreKey(finalKey);
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.ask(() => inWholeMs(this.space.inspect(finalKey)));
  }

  permits(finalKey: string): Promise<PermitState | null> {
    return this.ask(() => inWholeMs(this.space.permits(finalKey)));
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    return this.ask(() => this.space.forceUnlock(finalKey));
  }

  ping(): Promise<void> {
    return this.ask(() => undefined);
  }

  /**
   * Ends the watches of this store, and gives up its places in lines. Holds stay until their lease ends, as those of a
   * process that exits do.
   */
  close(): Promise<void> {
    this.closed = true;
    for (const watch of this.watches) watch.close();
    this.leaveAllLines();
    return Promise.resolve();
  }

  private watch(finalKey: string, process: object, listener: WatchListener): Watch {
    let open = true;
    let unsubscribe: (() => void) | undefined;
    const watch: Watch = {
      get live() {
        return unsubscribe !== undefined;
      },
      close: () => {
        open = false;
        unsubscribe?.();
        unsubscribe = undefined;
        this.watches.delete(watch);
      },
    };
    // Hints arrive later, never inside the call that causes them, as they would over a network.
    const hint = () => later(() => (open ? listener.hint() : undefined));

    this.watches.add(watch);
    later(() => {
      if (!open) return;
      if (this.closed) {
        watch.close();
        listener.failed(this.closedFailure());
        return;
      }
      unsubscribe = this.space.subscribe(finalKey, { process, notify: hint });
      listener.hint();
    });
    return watch;
  }

  /** Does the work at once, so that requests take effect in the order of the calls; a throw becomes a rejection. */
  private ask<T>(work: () => T): Promise<T> {
    return new Promise((resolve) => {
      if (this.closed) throw this.closedFailure();
      resolve(work());
    });
  }

  private closedFailure(): StoreFailure {
    return new StoreFailure(
      'The memory store is closed. Use it only while the app is running.',
      'not-executed',
    );
  }
}

/** As Redis tells it; the clock here is finer. */
const inWholeMs = <T extends Pick<KeyState, 'holders'>>(state: T | null): T | null =>
  state && {
    ...state,
    holders: state.holders.map((one) => ({ ...one, remainingMs: Math.ceil(one.remainingMs) })),
  };
