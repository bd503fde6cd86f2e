import { latchClosedError } from '../errors/error-messages.js';
import { isTaken, LockConfigurationError } from '../errors/lock.errors.js';
import type { LatchStore } from '../seam/object-stores.js';
import { checkAmount, resolveWait, type ObjectCall, type WaitOptions } from '../settings/object-call.js';
import type { ObjectContext, Question } from './object-context.js';
import { waitAt } from './wait-at.js';

const WAITING: Question = { doing: 'waiting for' };
const SETTING: Question = {
  doing: 'setting the count of',
  ifUnknown: 'trySetCount() can be called again, which sets nothing twice.',
};
const COUNTING_DOWN: Question = {
  doing: 'counting down',
  ifUnknown: 'look at getCount() before it is counted down again.',
};
const COUNTING: Question = { doing: 'reading the count of' };
const DELETING: Question = { doing: 'deleting', ifUnknown: 'delete() can be called again.' };

/**
 * A countdown latch: callers wait until others have counted it down to zero, shared with Redisson's `RCountDownLatch`.
 * It is open when its count is zero, also before somebody has set one.
 *
 * Made by `LockService.countDownLatch`; it keeps nothing itself, and may be made anew for each call.
 *
 * Every method throws `LockConfigurationError` for a count that cannot be, and `LockStoreError` when the store fails or has
 * something else than a number under the key. Its `outcome` is `unknown` when nobody can tell whether the request was
 * executed; nothing is then undone or repeated. After the shutdown of the app it is a `LockAbortedError` (`LOCK_SHUTDOWN`).
 *
 * @example
 * const imported = locks.countDownLatch('imported');
 * await imported.trySetCount(3);
 * await imported.wait({ waitMs: 60_000 }); // until countDown() was called three times, in whichever process
 */
export class CountDownLatch {
  private readonly finalKey: string;
  private readonly store: LatchStore;

  /** @internal Made by `LockService.countDownLatch`. */
  constructor(
    private readonly context: ObjectContext,
    /** As the caller wrote it, without the prefix. */
    readonly key: string,
  ) {
    const { latches } = context.core.store;
    if (!latches) throw new LockConfigurationError('This store cannot keep countdown latches.');
    this.store = latches;
    this.finalKey = context.finalKey(key);
  }

  /**
   * Waits until the count is zero. Options and their defaults: {@link WaitOptions}. Throws `LockNotAcquiredError` when the
   * wait is over, and `LockAbortedError` when `signal` is aborted or the app stops.
   *
   * @example await imported.wait({ waitMs: 60_000 });
   */
  async wait(options?: WaitOptions): Promise<void> {
    await this.open(resolveWait(options, 'countDownLatch.wait', this.context.core.settings));
  }

  /**
   * Like {@link wait}, but answers whether the count is zero, and does not wait unless `waitMs` (default here: 0 ms) says so.
   * Throws all else that {@link wait} throws.
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
   * Sets the count, unless there is one already that is not down yet. Answers whether it set it.
   *
   * @example await imported.trySetCount(3);
   */
  async trySetCount(count: number): Promise<boolean> {
    const amount = checkAmount('count', count);
    return this.request(SETTING, () => this.store.set(this.finalKey, amount));
  }

  /**
   * Makes the count one less. At zero the latch is open, and all who wait go on. Does nothing to one that is open.
   *
   * @example await imported.countDown();
   */
  async countDown(): Promise<void> {
    await this.request(COUNTING_DOWN, () => this.store.countDown(this.finalKey));
  }

  /**
   * What is left to be counted down; 0 when it is open.
   *
   * @example const left = await imported.getCount();
   */
  getCount(): Promise<number> {
    return this.request(COUNTING, () => this.store.count(this.finalKey));
  }

  /**
   * Removes the latch, which opens it for all who wait. Answers whether there was a count.
   *
   * @example await imported.delete();
   */
  delete(): Promise<boolean> {
    return this.request(DELETING, () => this.store.remove(this.finalKey));
  }

  private async open(call: ObjectCall): Promise<void> {
    const { context, finalKey, key, store } = this;
    const waiters = context.at(`latch ${finalKey}`, false, (listener) => store.watch(finalKey, listener));
    await waitAt(context, context.waitOf(key, call), {
      question: WAITING,
      waiters,
      inOrder: false,
      maxWaiters: Infinity,
      ask: async (shares) => (await waiters.question(shares, () => store.count(finalKey))) === 0,
      busy: (waitedMs) => latchClosedError(key, waitedMs, call.waitMs),
    });
  }

  private request<T>(question: Question, send: () => Promise<T>): Promise<T> {
    return this.context.request(this.key, question, send);
  }
}
