import type { LockKind } from '../../core/kinds/kinds.js';
import { printsOnly } from '../../core/util/printing.js';
import type { LockStore, Watch, WatchListener, StoreHost } from '../../core/seam/lock-store.js';
import { EXPIRING } from '../../core/seam/lease-model.js';
import type { ListReply, ListRequest } from '../../core/seam/listing.js';
import type { ProcessNotes } from '../../core/seam/process-notes.js';
import { StoreHosts } from '../../core/seam/store-hosts.js';
import { keyPageOf } from '../key-pages.js';
import { checkStoreKey } from '../key-rule.js';
import type { KeyState, PermitState } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { checkObject, reading, invalidOption } from '../../core/settings/option-checks.js';
import { checkNames } from '../../core/settings/option-names.js';
import { later } from '../../core/util/later.js';
import { MemoryLatches, MemorySemaphores } from './memory-objects.js';
import { MemoryKind, type MemoryHost } from './memory-kind.js';
import { CLOCKS, MemorySpace, type MemorySpaceOptions } from './memory-space.js';

/** Either the space of another store, or the clocks of a new space. */
export type MemoryStoreOptions =
  (MemorySpaceOptions & { readonly shared?: undefined }) | { readonly shared: MemorySpace };

/**
 * Keeps locks in the memory of this process, for tests and for apps that are one process. At the seam it behaves like
 * the Redis store, but it does not exclude other processes.
 *
 * Two stores with the same `shared` space exclude each other, as two processes on one Redis do.
 *
 * The store starts no timers and does not poll, so it works under fake timers. Install them before you acquire the
 * first lock: replacing the clock during a lease moves the end of that lease.
 *
 * @throws {StoreFailure} (from its methods) after {@link close}, when the wall clock allows no exact fencing token,
 * when the key is something else already, and when the number of permits was never set
 *
 * @throws {LockKeyError} (from {@link checkKey}) for keys that Redis rejects
 *
 * @example
 * const space = new MemorySpace();
 * const here = new MemoryStore({ shared: space });
 * const there = new MemoryStore({ shared: space });
 */
export class MemoryStore implements LockStore {
  readonly name = 'The memory store';
  readonly lease = EXPIRING;
  readonly hasCounters = true;
  readonly commandTimeoutMs = 0;
  readonly kinds: { readonly [K in LockKind]: MemoryKind<K> };
  readonly semaphores: MemorySemaphores;
  readonly latches: MemoryLatches;
  readonly processes: ProcessNotes;

  get place(): string {
    return `memory ${this.space.number}`;
  }

  /** The space with the holds. Pass it to another store as `shared` to simulate a second process. */
  readonly space: MemorySpace;
  private readonly services = new StoreHosts();
  private readonly stopListening: () => void;
  private readonly leaveAllQueues: () => void;
  private readonly watches = new Set<Watch>();
  private closed = false;

  constructor(options: MemoryStoreOptions = {}) {
    checkObject('options', 'an object', options);
    this.space = reading('shared', () => {
      const { shared, ...clocks } = options;
      checkNames(options, 'MemoryStore', shared === undefined ? CLOCKS : { shared: true });
      if (shared === undefined) return new MemorySpace(clocks);
      // Not `instanceof`: the space may come from another copy of the package.
      return typeof shared.subscribe === 'function'
        ? shared
        : invalidOption('shared', 'a MemorySpace', shared);
    });
    const host: MemoryHost = {
      space: this.space,
      request: (work) => this.request(work),
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
    this.processes = this.space.notes.of((work) => this.request(work));
    this.stopListening = this.space.onRevocation((finalKey, owner) =>
      later(() => this.services.revocationRequested(finalKey, owner)),
    );
    this.leaveAllQueues = () => Object.values(kinds).forEach((kind) => kind.leaveAll());
  }

  /** Number of running holds and of subscriptions in the space, including other stores that share it. */
  get size(): { readonly holds: number; readonly watches: number } {
    return this.space.size;
  }

  /**
   * Rejects the keys that Redis rejects, although they would work here.
   *
   * @throws {LockKeyError} for such a key
   */
  checkKey(finalKey: string): void {
    checkStoreKey(finalKey);
  }

  /** Needs no connection. */
  open(host: StoreHost): Promise<void> {
    this.services.add(host);
    return Promise.resolve();
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.request(() => inWholeMs(this.space.inspect(finalKey)));
  }

  list(request: ListRequest): Promise<ListReply> {
    return this.request(() => {
      const { page, cursor } = keyPageOf(this.space.names(), request);
      const keys = page.flatMap((finalKey) => {
        const state = inWholeMs(this.space.listed(finalKey));
        return state ? [{ finalKey, state }] : [];
      });
      return { keys, cursor };
    });
  }

  permits(finalKey: string): Promise<PermitState | null> {
    return this.request(() => inWholeMs(this.space.permits(finalKey)));
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    return this.request(() => this.space.forceUnlock(finalKey));
  }

  revoke(finalKey: string): Promise<boolean> {
    return this.request(() => this.space.revoke(finalKey));
  }

  ping(): Promise<void> {
    return this.request(() => undefined);
  }

  /**
   * Ends the watches of this store, and removes its queue entries. Holds stay until their lease ends, like the holds of
   * a process that exits.
   */
  close(): Promise<void> {
    this.closed = true;
    for (const watch of this.watches) watch.close();
    this.stopListening();
    this.leaveAllQueues();
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
    // Wake-ups arrive later, never inside the call that causes them, as over a network.
    const wakeUp = () => later(() => (open ? listener.notified() : undefined));

    this.watches.add(watch);
    later(() => {
      if (!open) return;
      if (this.closed) {
        watch.close();
        listener.failed(this.closedFailure());
        return;
      }
      unsubscribe = this.space.subscribe(finalKey, { process, notify: wakeUp });
      listener.notified();
    });
    return watch;
  }

  /** Runs the work at once, so that requests take effect in the order of the calls. A throw becomes a rejection. */
  private request<T>(work: () => T): Promise<T> {
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

printsOnly(MemoryStore, ({ place }) => ({ place }));

/** Rounds remaining times up to whole ms, as Redis returns them; the clock here is finer. */
const inWholeMs = <T extends Pick<KeyState, 'holders'>>(state: T | null): T | null =>
  state && {
    ...state,
    holders: state.holders.map((one) => ({ ...one, remainingMs: Math.ceil(one.remainingMs) })),
  };
