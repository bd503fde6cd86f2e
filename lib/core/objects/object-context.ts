import { CompactingMap } from '../util/compacting.js';
import type { Runtime } from '../util/runtime.js';
import type { CoreContext } from '../context/core-context.js';
import { closedError, objectStoreError } from '../errors/error-messages.js';
import type { InFlight } from '../util/in-flight.js';
import { isNested } from '../nesting/section.js';
import type { ObjectCall } from '../settings/object-call.js';
import type { Watch, WatchListener } from '../seam/lock-store.js';
import { isNotExecuted } from '../seam/store-failure.js';
import { Callers } from '../wait/callers.js';
import type { WaitHost } from '../wait/until-won.js';
import type { TimedWait } from '../wait/wait.js';

/** Request of a semaphore or a latch, as error messages describe it. */
export interface ObjectRequest {
  /** As in `The lock store failed while acquiring permits of "mail"`. */
  readonly doing: string;
  /** What to know when the outcome is unknown; undefined for a request that changes nothing. */
  readonly ifUnknown?: string;
}

/** State that the semaphores and latches of one service instance share: access to the store, and their callers. */
export class ObjectContext implements WaitHost {
  private readonly callers = new CompactingMap<string, Callers>();

  constructor(
    readonly core: CoreContext,
    private readonly inFlight: InFlight,
  ) {
    core.wakeOthers = () => this.wakeAll();
  }

  /** At how many objects callers wait. */
  get size(): number {
    return this.callers.size;
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
    requests.begin();
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
  at(name: string, inOrder: boolean, watch: (listener: WatchListener) => Watch): Callers {
    const existing = this.callers.get(name);
    if (existing) return existing;
    const callers: Callers = new Callers({
      runtime: this.runtime,
      inOrder,
      watch,
      outages: this.core.outages,
      onIdle: () => {
        if (this.callers.get(name) === callers) this.callers.delete(name);
      },
    });
    this.callers.set(name, callers);
    return callers;
  }

  get runtime(): Runtime {
    return this.core.runtime;
  }

  get excludes(): boolean {
    return this.core.settings.excludes;
  }

  get storeFails(): boolean {
    return this.core.outages.storeFails;
  }

  reasonToStop(wait: TimedWait): Error | undefined {
    return this.core.reasonToStop(wait);
  }

  onStop(listener: () => void): () => void {
    return this.core.onStop(listener);
  }

  private wakeAll(): void {
    for (const callers of [...this.callers.values()]) callers.wakeAll();
  }
}
