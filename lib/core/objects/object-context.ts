import { CompactingMap } from '../util/compacting.js';
import type { CoreContext } from '../context/core-context.js';
import { closedError, objectStoreError } from '../errors/error-messages.js';
import type { InFlight } from '../util/in-flight.js';
import { isNested } from '../nesting/section.js';
import type { ObjectCall } from '../settings/object-call.js';
import type { Watch, WatchListener } from '../seam/lock-store.js';
import { isNotExecuted } from '../seam/store-failure.js';
import type { TimedWait } from '../wait/wait.js';
import { Waiters } from './waiters.js';

/** Request of a semaphore or a latch, as error messages describe it. */
export interface ObjectRequest {
  /** As in `The lock store failed while acquiring permits of "mail"`. */
  readonly doing: string;
  /** What to know when the outcome is unknown; undefined for a request that changes nothing. */
  readonly ifUnknown?: string;
}

/** State that the semaphores and latches of one service instance share: access to the store, and their waiters. */
export class ObjectContext {
  private readonly waiters = new CompactingMap<string, Waiters>();

  constructor(
    readonly core: CoreContext,
    private readonly inFlight: InFlight,
  ) {
    core.wakeOthers = () => this.wakeAll();
  }

  /** At how many objects callers wait. */
  get size(): number {
    return this.waiters.size;
  }

  /** A shutdown waits for the end of this. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.inFlight.begin();
    try {
      return await this.core.awaited(work());
    } finally {
      this.inFlight.end();
    }
  }

  /** Asks the store, and says so when it fails. */
  request<T>(key: string, request: ObjectRequest, send: () => Promise<T>): Promise<T> {
    const startedAt = this.core.runtime.now();
    return this.during(() =>
      this.judged(send).catch((failure: unknown) => {
        const shown = this.core.shown(key);
        if (this.core.phase === 'closed' && isNotExecuted(failure)) throw closedError(shown, request.doing);
        const afterMs = this.core.runtime.now() - startedAt;
        throw objectStoreError(shown, failure, request, afterMs);
      }),
    );
  }

  /** Asks the store; its failures pass as they are. A closing service waits for the reply, for a time. */
  async judged<T>(send: () => Promise<T>): Promise<T> {
    const { requests, asking } = this.core;
    asking.begin();
    try {
      const reply = await send();
      requests.replied();
      return reply;
    } catch (failure) {
      requests.failed(failure);
      throw failure;
    } finally {
      asking.end();
    }
  }

  waitOf(key: string, { waitMs, signal }: ObjectCall): TimedWait {
    const startedAt = this.core.runtime.now();
    const { group, waitCap } = this.core;
    return { key, startedAt, waitMs: waitCap.of(waitMs), signal, nested: isNested(group) };
  }

  /** The callers at one object; `name` tells it from all others. */
  at(name: string, inOrder: boolean, watch: (listener: WatchListener) => Watch): Waiters {
    const existing = this.waiters.get(name);
    if (existing) return existing;
    const waiters: Waiters = new Waiters({
      runtime: this.core.runtime,
      inOrder,
      watch,
      outages: this.core.outages,
      onIdle: () => {
        if (this.waiters.get(name) === waiters) this.waiters.delete(name);
      },
    });
    this.waiters.set(name, waiters);
    return waiters;
  }

  private wakeAll(): void {
    for (const waiters of [...this.waiters.values()]) waiters.wakeAll();
  }
}
