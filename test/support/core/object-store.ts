import type { LatchStore, SemaphoreStore } from '../../../lib/core/seam/object-stores.js';
import type { WatchListener } from '../../../lib/core/seam/watch.js';
import { ScriptedStore, ScriptedWatch } from './scripted-store.js';
import { settled } from './virtual-runtime.js';

/** What the core has asked about an object; the test answers it, or lets it fail. */
export interface ObjectRequest {
  /** As `take 2`, or `count`. */
  readonly what: string;
  reply(value: unknown): Promise<void>;
  fail(failure: unknown): Promise<void>;
}

/** A store whose semaphores and latches answer what the test says. */
export class ObjectStore extends ScriptedStore {
  /** All that was ever asked, oldest first. */
  readonly objectRequests: string[] = [];
  private readonly unreplied: ObjectRequest[] = [];

  readonly semaphores: SemaphoreStore = {
    take: (_key, permits) => this.put(`take ${permits}`),
    add: (_key, permits) => this.put(`add ${permits}`),
    set: (_key, permits) => this.put(`set ${permits}`),
    free: () => this.put('free'),
    drain: () => this.put('drain'),
    remove: () => this.put('remove'),
    watch: (key, listener) => this.listen(key, listener),
  };

  readonly latches: LatchStore = {
    set: (_key, count) => this.put(`set ${count}`),
    countDown: () => this.put('count down'),
    count: () => this.put('count'),
    remove: () => this.put('remove'),
    watch: (key, listener) => this.listen(key, listener),
  };

  /** What waits for its answer. */
  get requested(): readonly string[] {
    return this.unreplied.map(({ what }) => what);
  }

  /** The questions that wait for their answers, oldest first. */
  get requests(): readonly ObjectRequest[] {
    return this.unreplied;
  }

  /** The oldest question that waits for its answer. */
  get nextRequest(): ObjectRequest {
    const [oldest] = this.unreplied;
    if (!oldest) throw new Error('nothing is asked at the moment');
    return oldest;
  }

  private listen(key: string, listener: WatchListener): ScriptedWatch {
    const watch = new ScriptedWatch(key, listener);
    this.watches.push(watch);
    return watch;
  }

  private put<T>(what: string): Promise<T> {
    this.objectRequests.push(what);
    return new Promise((resolve, reject) => {
      const done = async (settle: () => void): Promise<void> => {
        this.unreplied.splice(this.unreplied.indexOf(request), 1);
        settle();
        await settled();
      };
      const request: ObjectRequest = {
        what,
        reply: (value) => done(() => resolve(value as T)),
        fail: (failure) => done(() => reject(failure)),
      };
      this.unreplied.push(request);
    });
  }
}
