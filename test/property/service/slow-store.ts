import type fc from 'fast-check';
import { EXPIRING } from '../../../lib/core/seam/lease-model.js';
import type { LockKind } from '../../../lib/core/kinds/kinds.js';
import type { KindStore, KindStores, LockStore } from '../../../lib/core/seam/lock-store.js';
import type { KeyState } from '../../../lib/core/seam/reply.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import type { MemorySpace } from '../../../lib/stores/memory/memory-space.js';

/** What is on one line arrives in the order in which it was sent; when, the scheduler says. */
class Channel {
  private readonly queue: (() => void)[] = [];

  constructor(
    private readonly scheduler: fc.Scheduler,
    private readonly name: string,
  ) {}

  send(what: string, arrive: () => void): void {
    this.queue.push(arrive);
    // Whichever of them is due: it is the oldest that arrives.
    void this.scheduler
      .schedule(Promise.resolve(), `${this.name}: ${what}`)
      .then(() => this.queue.shift()!());
  }
}

/** A memory store that is far away: requests, answers and hints are on their way for as long as the scheduler likes. */
export class SlowStore implements LockStore {
  readonly name = 'The slow store';
  readonly lease = EXPIRING;
  readonly commandTimeoutMs = 1_000;
  readonly kinds: KindStores;
  private readonly store: MemoryStore;
  private readonly requests: Channel;
  private readonly replies: Channel;
  private readonly wakeUps: Channel;

  /** @param failure with which a request of this name fails after it was executed; undefined: it is answered */
  constructor(
    space: MemorySpace,
    scheduler: fc.Scheduler,
    name: string,
    private readonly failure: (what: string) => StoreFailure | undefined = () => undefined,
  ) {
    this.store = new MemoryStore({ shared: space });
    this.requests = new Channel(scheduler, `request of ${name}`);
    this.replies = new Channel(scheduler, `answer to ${name}`);
    this.wakeUps = new Channel(scheduler, `hint to ${name}`);
    const kinds = Object.entries(this.store.kinds) as [LockKind, KindStore][];
    this.kinds = Object.fromEntries(kinds.map(([kind, near]) => [kind, this.far(near)]));
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.store.inspect(finalKey);
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    return this.store.forceUnlock(finalKey);
  }

  ping(): Promise<void> {
    return this.store.ping();
  }

  close(): Promise<void> {
    return this.store.close();
  }

  private far(kind: KindStore): KindStore {
    return {
      acquire: (claim) => this.travel('acquire', () => kind.acquire(claim)),
      release: (claim, how) => this.travel('release', () => kind.release(claim, how)),
      extendMany: (claims) => this.travel('extend', () => kind.extendMany(claims)),
      watch: (claim, { notified, failed }) => {
        let open = true;
        const later = (): void => this.wakeUps.send('hint', () => (open ? notified() : undefined));
        const watch = kind.watch!(claim, { notified: later, failed });
        return {
          get live() {
            return watch.live;
          },
          close: () => {
            open = false;
            watch.close();
          },
        };
      },
    };
  }

  private travel<T>(what: string, request: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.requests.send(what, () => {
        const reply = request();
        const failure = this.failure(what);
        this.replies.send(what, () => (failure ? reject(failure) : void reply.then(resolve, reject)));
      });
    });
  }
}
