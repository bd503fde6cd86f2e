import { latchClosedError, objectStoreError } from '../errors/error-messages.js';
import { isTaken, LockConfigurationError } from '../errors/lock.errors.js';
import { printsOnly } from '../util/printing.js';
import type { LatchStore } from '../seam/object-stores.js';
import { checkAmount, resolveWait, type ObjectCall, type WaitOptions } from '../settings/object-call.js';
import type { ObjectContext, ObjectRequest } from './object-context.js';
import { waitAt } from './wait-at.js';

const WAITING: ObjectRequest = { doing: 'waiting for' };
const SETTING: ObjectRequest = {
  doing: 'setting the count of',
  ifUnknown: 'trySetCount() can be called again, which sets nothing twice.',
};
const COUNTING_DOWN: ObjectRequest = {
  doing: 'counting down',
  ifUnknown: 'look at getCount() before it is counted down again.',
};
const COUNTING: ObjectRequest = { doing: 'reading the count of' };
const DELETING: ObjectRequest = { doing: 'deleting', ifUnknown: 'delete() can be called again.' };

/**
 * Countdown latch, shared with Redisson's `RCountDownLatch`: callers wait until it is counted down to zero. It is open
 * when its count is zero, and when no count has been set.
 *
 * Create it with `LockService.countDownLatch`. It has no state of its own, so you may create one for each call.
 *
 * Every method throws:
 * - `LockConfigurationError` for an invalid count
 * - `LockStoreError` when the store fails, or has something other than a number under the key. With the outcome
 *   `unknown`, the request may have been executed; the library does not undo or repeat it.
 * - `LockAbortedError` (`LOCK_SHUTDOWN`) after the shutdown of the app
 *
 * @example
 * const imported = locks.countDownLatch('imported');
 * await imported.trySetCount(3);
 * await imported.wait({ waitMs: 60_000 }); // until countDown() was called three times, in any process
 */
export class CountDownLatch {
  static {
    printsOnly(this, ({ context, key }) => ({ key: context.core.shown(key) }));
  }

  private readonly finalKey: string;
  private readonly store: LatchStore;

  /** @internal Made by `LockService.countDownLatch`. */
  constructor(
    private readonly context: ObjectContext,
    /** Key as the caller wrote it, without the prefix. */
    readonly key: string,
  ) {
    const { latches, name } = context.core.store;
    if (!latches) throw new LockConfigurationError(`${name} cannot keep countdown latches.`);
    this.store = latches;
    this.finalKey = context.core.finalKey(key);
  }

  /**
   * Waits until the count is zero. Options and defaults: {@link WaitOptions}.
   *
   * @throws LockNotAcquiredError when the wait times out
   * @throws LockAbortedError when `signal` aborts or the app stops
   *
   * @example await imported.wait({ waitMs: 60_000 });
   */
  async wait(options?: WaitOptions): Promise<void> {
    await this.open(resolveWait(options, 'countDownLatch.wait', this.context.core.settings));
  }

  /**
   * Like {@link wait}, but resolves with whether the count is zero. `waitMs` defaults to 0. Throws every other error of
   * {@link wait}.
   *
   * @example if (await imported.tryWait({ waitMs: 100 })) return 'imported';
   */
  async tryWait(options?: WaitOptions): Promise<boolean> {
    try {
      await this.open(resolveWait(options, 'countDownLatch.tryWait', { waitMs: 0 }));
      return true;
    } catch (error) {
      if (isTaken(error)) return false;
      throw error;
    }
  }

  /**
   * Sets the count, unless one is set that is not zero yet. Resolves with whether it set it.
   *
   * @example await imported.trySetCount(3);
   */
  async trySetCount(count: number): Promise<boolean> {
    const amount = checkAmount('count', count);
    return this.request(SETTING, () => this.store.set(this.finalKey, amount));
  }

  /**
   * Decreases the count by one. At zero the latch opens, and all waiters go on. An open latch does not change.
   *
   * @example await imported.countDown();
   */
  async countDown(): Promise<void> {
    await this.request(COUNTING_DOWN, () => this.store.countDown(this.finalKey));
  }

  /**
   * Resolves with the remaining count; 0 when the latch is open.
   *
   * @example const left = await imported.getCount();
   */
  getCount(): Promise<number> {
    return this.request(COUNTING, () => this.store.count(this.finalKey));
  }

  /**
   * Removes the latch, which opens it for all waiters. Resolves with whether there was a count.
   *
   * @example await imported.delete();
   */
  delete(): Promise<boolean> {
    return this.request(DELETING, () => this.store.remove(this.finalKey));
  }

  private async open(call: ObjectCall): Promise<void> {
    const { context, finalKey, key, store } = this;
    const { shown } = context.core;
    const callers = context.at(`latch ${finalKey}`, false, (listener) => store.watch(finalKey, listener));
    const isOpen = async (): Promise<boolean> => (await store.count(finalKey)) === 0;
    await waitAt(context, key, call, callers, {
      maxWaiters: Infinity,
      request: (shares) => (shares ? callers.share(isOpen) : isOpen()),
      taken: (waitedMs) => latchClosedError(shown(key), waitedMs, call.waitMs),
      failed: (failure, ...how) => objectStoreError(shown(key), failure, WAITING, ...how),
    });
  }

  private request<T>(request: ObjectRequest, send: () => Promise<T>): Promise<T> {
    return this.context.request(this.key, request, send);
  }
}
