import { noPermitsError, objectStoreError, semaphoreFullError } from '../errors/error-messages.js';
import { isTaken, LockConfigurationError } from '../errors/lock.errors.js';
import { printsOnly } from '../util/printing.js';
import type { SemaphoreStore } from '../seam/object-stores.js';
import {
  checkAmount,
  checkChange,
  resolveWait,
  type ObjectCall,
  type WaitOptions,
} from '../settings/object-call.js';
import type { ObjectContext, ObjectRequest } from './object-context.js';
import { waitAt } from './wait-at.js';

const ACQUIRING: ObjectRequest = {
  doing: 'acquiring permits of',
  ifUnknown: 'nobody can tell, so nothing more is given back, and the permits may be missing from now on.',
};
const RELEASING: ObjectRequest = {
  doing: 'releasing permits of',
  ifUnknown: 'look at availablePermits() before the permits are given back again.',
};
const SETTING: ObjectRequest = {
  doing: 'setting the permits of',
  ifUnknown: 'trySetPermits() can be called again, which sets nothing twice.',
};
const ADDING: ObjectRequest = {
  doing: 'adding permits to',
  ifUnknown: 'look at availablePermits() before they are added again.',
};
const DRAINING: ObjectRequest = {
  doing: 'draining',
  ifUnknown: 'the permits may be taken, and how many they were is not known.',
};
const COUNTING: ObjectRequest = { doing: 'counting the permits of' };
const DELETING: ObjectRequest = { doing: 'deleting', ifUnknown: 'delete() can be called again.' };

/**
 * Counting semaphore, shared with Redisson's `RSemaphore`: a number of permits in the store that callers take and give
 * back. A permit has no owner and no lease: any process may give one back, and the permits of a crashed process stay
 * taken. Use `LockService.permits` for permits that expire.
 *
 * Create it with `LockService.semaphore`. It has no state of its own, so you may create one for each call.
 *
 * Every method throws:
 * - `LockConfigurationError` for an invalid number of permits
 * - `LockStoreError` when the store fails, or has something other than a number under the key. With the outcome
 *   `unknown`, the request may have been executed; the library does not undo or repeat it.
 * - `LockAbortedError` (`LOCK_SHUTDOWN`) after the shutdown of the app. Permits that were not given back stay taken.
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
  static {
    printsOnly(this, ({ context, key }) => ({ key: context.core.shown(key) }));
  }

  private readonly finalKey: string;
  private readonly store: SemaphoreStore;

  /** @internal Made by `LockService.semaphore`. */
  constructor(
    private readonly context: ObjectContext,
    /** Key as the caller wrote it, without the prefix. */
    readonly key: string,
  ) {
    const { semaphores, name } = context.core.store;
    if (!semaphores) throw new LockConfigurationError(`${name} cannot keep semaphores.`);
    this.store = semaphores;
    this.finalKey = context.core.finalKey(key);
  }

  /**
   * Takes permits, all or none, and waits for them. Callers of one process that wait are served in the order of their calls.
   * Options and defaults: {@link WaitOptions}.
   *
   * If the outcome of a `LockStoreError` is `unknown`, the permits may stay taken. The library does not give them back:
   * one permit too few keeps callers waiting, one too many would admit too many callers.
   *
   * @param permits default: 1
   * @throws LockNotAcquiredError when the wait times out, or more than `maxWaiters` callers wait
   * @throws LockAbortedError when `signal` aborts or the app stops
   *
   * @example await printers.acquire(2, { waitMs: 2_000 });
   */
  async acquire(permits = 1, options?: WaitOptions): Promise<void> {
    const { settings } = this.context.core;
    await this.take(checkAmount('permits', permits), resolveWait(options, 'semaphore.acquire', settings));
  }

  /**
   * Like {@link acquire}, but resolves with whether it took the permits. `waitMs` defaults to 0. Throws every other
   * error of {@link acquire}.
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
   * Gives permits back, and wakes waiters. It does not check whether they were taken: one release too many adds a
   * permit. Where no number is set, `permits` becomes the number.
   *
   * @param permits default: 1
   *
   * @example await printers.release(2);
   */
  async release(permits = 1): Promise<void> {
    const amount = checkAmount('permits', permits);
    await this.request(RELEASING, () => this.store.add(this.finalKey, amount));
  }

  /**
   * Sets the number of permits, unless a number is set, even if it is 0. Resolves with whether it set it. A semaphore
   * has no permits until some are set or released.
   *
   * @example await printers.trySetPermits(3);
   */
  async trySetPermits(permits: number): Promise<boolean> {
    const amount = checkAmount('permits', permits);
    return this.request(SETTING, () => this.store.set(this.finalKey, amount));
  }

  /**
   * Adds permits permanently, or removes them with a negative number. While the number is negative, no caller gets a
   * permit.
   *
   * @example await printers.addPermits(-1);
   */
  async addPermits(permits: number): Promise<void> {
    const change = checkChange('permits', permits);
    await this.request(ADDING, () => this.store.add(this.finalKey, change));
  }

  /**
   * Resolves with the number of free permits; negative when {@link addPermits} removed more than were free.
   *
   * @example const free = await printers.availablePermits();
   */
  availablePermits(): Promise<number> {
    return this.request(COUNTING, () => this.store.free(this.finalKey));
  }

  /**
   * Takes all free permits, and resolves with their number. A negative number becomes zero.
   *
   * @example const taken = await printers.drainPermits();
   */
  drainPermits(): Promise<number> {
    return this.request(DRAINING, () => this.store.drain(this.finalKey));
  }

  /**
   * Removes the semaphore, as if no number had been set. Resolves with whether there was one. Waiters go on waiting.
   *
   * @example await printers.delete();
   */
  delete(): Promise<boolean> {
    return this.request(DELETING, () => this.store.remove(this.finalKey));
  }

  private async take(permits: number, call: ObjectCall): Promise<void> {
    const { context, finalKey, key, store } = this;
    const { settings, shown } = context.core;
    const { maxWaiters } = settings;
    const callers = context.at(`semaphore ${finalKey}`, true, (listener) => store.watch(finalKey, listener));
    await waitAt(context, key, call, callers, {
      maxWaiters,
      request: () => store.take(finalKey, permits),
      look: async () => (await store.free(finalKey)) >= permits,
      taken: (waitedMs) => noPermitsError(shown(key), permits, waitedMs, call.waitMs),
      full: () => semaphoreFullError(shown(key), maxWaiters),
      failed: (failure, ...how) => objectStoreError(shown(key), failure, ACQUIRING, ...how),
    });
  }

  private request<T>(request: ObjectRequest, send: () => Promise<T>): Promise<T> {
    return this.context.request(this.key, request, send);
  }
}
