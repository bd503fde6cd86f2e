import { noPermitsError, semaphoreFullError } from '../errors/error-messages.js';
import { isTaken, LockConfigurationError } from '../errors/lock.errors.js';
import type { SemaphoreStore } from '../seam/object-stores.js';
import {
  checkAmount,
  checkChange,
  resolveWait,
  type ObjectCall,
  type WaitOptions,
} from '../settings/object-call.js';
import type { ObjectContext, Question } from './object-context.js';
import { waitAt } from './wait-at.js';

const ACQUIRING: Question = {
  doing: 'acquiring permits of',
  ifUnknown: 'nobody can tell, so nothing more is given back, and the permits may be missing from now on.',
};
const RELEASING: Question = {
  doing: 'releasing permits of',
  ifUnknown: 'look at availablePermits() before the permits are given back again.',
};
const SETTING: Question = {
  doing: 'setting the permits of',
  ifUnknown: 'trySetPermits() can be called again, which sets nothing twice.',
};
const ADDING: Question = {
  doing: 'adding permits to',
  ifUnknown: 'look at availablePermits() before they are added again.',
};
const DRAINING: Question = {
  doing: 'draining',
  ifUnknown: 'the permits may be taken, and how many they were is not known.',
};
const COUNTING: Question = { doing: 'counting the permits of' };
const DELETING: Question = { doing: 'deleting', ifUnknown: 'delete() can be called again.' };

/**
 * A counting semaphore: a number of permits in the store that callers take and give back, shared with Redisson's
 * `RSemaphore`. Nobody owns a permit: it has no lease, whoever likes may give one back, and those of a process that
 * dies stay taken. Where that must not be, take `LockService.permits`.
 *
 * Made by `LockService.semaphore`; it keeps nothing itself, and may be made anew for each call.
 *
 * Every method throws `LockConfigurationError` for a number of permits that cannot be, and `LockStoreError` when the store
 * fails or has something else than a number under the key. Its `outcome` is `unknown` when nobody can tell whether the
 * request was executed; nothing is then undone or repeated. After the shutdown of the app it is a `LockAbortedError`
 * (`LOCK_SHUTDOWN`), and permits that were not given back before stay taken.
 *
 * @example
 * const printers = locks.semaphore('printers');
 * await printers.trySetPermits(3);
 * await printers.acquire();
 * try {
 *   await print(page);
 * } finally {
 *   await printers.release();
 * }
 */
export class Semaphore {
  private readonly finalKey: string;
  private readonly store: SemaphoreStore;

  /** @internal Made by `LockService.semaphore`. */
  constructor(
    private readonly context: ObjectContext,
    /** As the caller wrote it, without the prefix. */
    readonly key: string,
  ) {
    const { semaphores } = context.core.store;
    if (!semaphores) throw new LockConfigurationError('This store cannot keep semaphores.');
    this.store = semaphores;
    this.finalKey = context.finalKey(key);
  }

  /**
   * Takes so many permits (default: 1), all or none, and waits for them. Callers of one process that wait are served in the
   * order in which they came.
   *
   * Options and their defaults: {@link WaitOptions}. Throws `LockNotAcquiredError` when the wait is over, or more than
   * `maxWaiters` wait, and `LockAbortedError` when `signal` is aborted or the app stops. With a `LockStoreError` whose
   * `outcome` is `unknown` the permits may be taken for good: a number too small keeps somebody waiting, one too great
   * would let too many in.
   *
   * @example await printers.acquire(2, { waitMs: 2_000 });
   */
  async acquire(permits = 1, options?: WaitOptions): Promise<void> {
    const { settings } = this.context.core;
    await this.take(checkAmount('permits', permits), resolveWait(options, 'semaphore.acquire', settings));
  }

  /**
   * Like {@link acquire}, but answers whether it has the permits, and does not wait unless `waitMs` (default here: 0 ms)
   * says so. Throws all else that {@link acquire} throws.
   *
   * @example if (!(await printers.tryAcquire())) return 'busy';
   */
  async tryAcquire(permits = 1, options?: WaitOptions): Promise<boolean> {
    const call = resolveWait(options, 'semaphore.tryAcquire', { waitMs: 0 });
    try {
      await this.take(checkAmount('permits', permits), call);
      return true;
    } catch (error) {
      if (isTaken(error)) return false;
      throw error;
    }
  }

  /**
   * Gives so many permits (default: 1) back, and wakes who waits. Nobody checks whether they were taken: one release too
   * many is one permit more. Where nobody has set a number, there are so many then.
   *
   * @example await printers.release(2);
   */
  async release(permits = 1): Promise<void> {
    const amount = checkAmount('permits', permits);
    await this.request(RELEASING, () => this.store.add(this.finalKey, amount));
  }

  /**
   * Sets the number of permits, unless there is one already, be it 0. Answers whether it set it. Until somebody has set or
   * released some, there are none.
   *
   * @example await printers.trySetPermits(3);
   */
  async trySetPermits(permits: number): Promise<boolean> {
    const amount = checkAmount('permits', permits);
    return this.request(SETTING, () => this.store.set(this.finalKey, amount));
  }

  /**
   * Makes the number greater for good, or smaller with a number below zero. Below zero nobody gets a permit until as many
   * have been given back.
   *
   * @example await printers.addPermits(-1);
   */
  async addPermits(permits: number): Promise<void> {
    const change = checkChange('permits', permits);
    await this.request(ADDING, () => this.store.add(this.finalKey, change));
  }

  /**
   * How many permits are free at this moment; below zero when {@link addPermits} has taken away more than were free.
   *
   * @example const free = await printers.availablePermits();
   */
  availablePermits(): Promise<number> {
    return this.request(COUNTING, () => this.store.free(this.finalKey));
  }

  /**
   * Takes all permits that are free, and answers how many they were. A number below zero becomes zero.
   *
   * @example const taken = await printers.drainPermits();
   */
  drainPermits(): Promise<number> {
    return this.request(DRAINING, () => this.store.drain(this.finalKey));
  }

  /**
   * Removes the semaphore, as if nobody had ever set a number. Answers whether there was one. Who waits goes on waiting.
   *
   * @example await printers.delete();
   */
  delete(): Promise<boolean> {
    return this.request(DELETING, () => this.store.remove(this.finalKey));
  }

  private async take(permits: number, call: ObjectCall): Promise<void> {
    const { context, finalKey, key, store } = this;
    const { maxWaiters } = context.core.settings;
    await waitAt(context, context.waitOf(key, call), {
      question: ACQUIRING,
      waiters: context.at(`semaphore ${finalKey}`, true, (listener) => store.watch(finalKey, listener)),
      inOrder: true,
      maxWaiters,
      ask: () => store.take(finalKey, permits),
      look: async () => (await store.free(finalKey)) >= permits,
      busy: (waitedMs) => noPermitsError(key, permits, waitedMs, call.waitMs),
      full: () => semaphoreFullError(key, maxWaiters),
    });
  }

  private request<T>(question: Question, send: () => Promise<T>): Promise<T> {
    return this.context.request(this.key, question, send);
  }
}
