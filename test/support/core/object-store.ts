import type { LatchStore, SemaphoreStore } from '../../../lib/core/seam/object-stores.js';
import type { WatchListener } from '../../../lib/core/seam/watch.js';
import { ScriptedStore, ScriptedWatch } from './scripted-store.js';
import { settled } from './virtual-runtime.js';

/** What the core has asked about an object; the test answers it, or lets it fail. */
export interface ObjectQuestion {
  /** As `take 2`, or `count`. */
  readonly what: string;
  answer(value: unknown): Promise<void>;
  fail(failure: unknown): Promise<void>;
}

/** A store whose semaphores and latches answer what the test says. */
export class ObjectStore extends ScriptedStore {
  /** All that was ever asked, oldest first. */
  readonly questions: string[] = [];
  private readonly unanswered: ObjectQuestion[] = [];

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
  get asked(): readonly string[] {
    return this.unanswered.map(({ what }) => what);
  }

  /** The oldest question that waits for its answer. */
  get question(): ObjectQuestion {
    const [oldest] = this.unanswered;
    if (!oldest) throw new Error('nothing is asked at the moment');
    return oldest;
  }

  private listen(key: string, listener: WatchListener): ScriptedWatch {
    const watch = new ScriptedWatch(key, listener);
    this.watches.push(watch);
    return watch;
  }

  private put<T>(what: string): Promise<T> {
    this.questions.push(what);
    return new Promise((resolve, reject) => {
      const done = async (settle: () => void): Promise<void> => {
        this.unanswered.splice(this.unanswered.indexOf(question), 1);
        settle();
        await settled();
      };
      const question: ObjectQuestion = {
        what,
        answer: (value) => done(() => resolve(value as T)),
        fail: (failure) => done(() => reject(failure)),
      };
      this.unanswered.push(question);
    });
  }
}
