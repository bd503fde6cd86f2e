import { Injectable } from '@nestjs/common';
import type { KeyState } from './core/seam/reply.js';
import type { Lease } from './core/lease/lease.js';
import type { LockEventListener, LockEvents } from './core/lock-events.js';
import type { CountDownLatch } from './core/objects/count-down-latch.js';
import type { Semaphore } from './core/objects/semaphore.js';
import type {
  Attempt,
  HeldLock,
  LockManager,
  LockSection,
  LockUsage,
  OneOfSeveral,
} from './core/lock-manager.js';
import type { Section } from './core/nesting/section.js';
import type {
  AcquireOptions,
  KeyWithMode,
  PermitsOptions,
  SectionOptions,
  Without,
} from './core/settings/acquire-options.js';
import { defaultCall, type LockCall } from './core/settings/lock-call.js';
import { checkKey, checkKeys, checkOneKey } from './key/key-check.js';
import { callAndSection, callOf } from './call-arguments.js';
import { Permits } from './permits.js';
import { processWide } from './core/process-wide.js';

/**
 * One key, or several that are taken all or none, each of which may have a mode of its own. Used verbatim; see `lockKey` for
 * templates. Of one that is given in both modes the write lock is taken.
 */
export type LockKeys = string | readonly (string | KeyWithMode)[];

type ForAcquire = AcquireOptions & Without<'onLost' | 'awaitRelease' | 'onBusy' | 'service' | 'permits'>;
type ForSection = SectionOptions & Without<'onBusy' | 'service' | 'permits'>;

@Injectable()
class LockService {
  /** @internal The name of its module; empty without one. */
  readonly moduleName: string;
  private readonly defaults: LockCall;
  private readonly tryDefaults: LockCall;
  private readonly permitDefaults: LockCall;

  /** Nest injects it; code does not make it. */
  constructor(
    private readonly manager: LockManager,
    private readonly context?: () => Record<string, unknown>,
    moduleName = '',
  ) {
    this.moduleName = moduleName;
    this.defaults = defaultCall(manager.settings);
    this.tryDefaults = { ...this.defaults, waitMs: 0 };
    this.permitDefaults = { ...this.defaults, kind: 'permit' };
  }

  /**
   * Takes the lock, runs `section`, and releases it, whatever happens. Gives back what `section` gives; its errors
   * pass untouched. A failed release or a lost lock changes neither: that is an event and a log line. The release is
   * waited for, unless `awaitRelease: false` says that it may come behind.
   *
   * Options and their defaults: {@link SectionOptions}; durations are whole ms.
   *
   * Throws `LockNotAcquiredError` when the wait is over, `LockStoreError` when the store fails, `LockAbortedError`,
   * `LockKeyError`; `LockConfigurationError` for an option or a section that cannot be, and an endless wait against the
   * order; `LockLostError` when the lock was over before its section began, inside a lock on the key that was lost, and
   * with `onLost: 'throw'` after its section.
   *
   * @example
   * await locks.withLock(lockKey('order:<<id>>', { id }), async (lease) => pay(id, lease.fencingToken));
   */
  withLock<T>(key: LockKeys, section: LockSection<T>): Promise<T>;
  withLock<T>(key: LockKeys, options: ForSection | undefined, section: LockSection<T>): Promise<T>;
  withLock<T>(
    key: LockKeys,
    optionsOrSection: SectionOptions | LockSection<T> | undefined,
    maybeSection?: LockSection<T>,
  ): Promise<T> {
    // Not async, so that the manager's promise is the caller's: one more around it costs as much as the rest here.
    try {
      const [call, section] = callAndSection(
        'withLock',
        optionsOrSection,
        maybeSection,
        this.defaults,
        this.manager.settings,
      );
      return this.manager.withLock(checkKeys(key), call, section);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Like {@link withLock}, but tells whether the section ran instead of throwing when the lock is taken, and does not
   * wait unless `waitMs` (default here: 0 ms) says so. A store that failed is never taken for a busy lock: that throws,
   * and so does all else that {@link withLock} throws.
   *
   * @example
   * const attempt = await locks.tryWithLock('nightly', () => report());
   * if (!attempt.ran) return 'running elsewhere';
   */
  tryWithLock<T>(key: LockKeys, section: LockSection<T>): Promise<Attempt<T>>;
  tryWithLock<T>(
    key: LockKeys,
    options: ForSection | undefined,
    section: LockSection<T>,
  ): Promise<Attempt<T>>;
  async tryWithLock<T>(
    key: LockKeys,
    optionsOrSection: SectionOptions | LockSection<T> | undefined,
    maybeSection?: LockSection<T>,
  ): Promise<Attempt<T>> {
    const [call, section] = callAndSection(
      'tryWithLock',
      optionsOrSection,
      maybeSection,
      this.tryDefaults,
      this.manager.settings,
    );
    return this.manager.tryWithLock(checkKeys(key), call, section);
  }

  /**
   * Takes the lock until `release()` or the end of the `await using` block. Options and their defaults:
   * {@link AcquireOptions}; durations are whole ms. Throws like {@link withLock}.
   *
   * @example await using lease = await locks.acquire('report', { waitMs: 2_000 });
   */
  async acquire(key: LockKeys, options?: ForAcquire): Promise<Lease> {
    return this.manager.acquire(
      checkKeys(key),
      callOf(options, this.defaults, 'acquire', this.manager.settings),
    );
  }

  /**
   * Like {@link acquire}, but answers null when the lock is taken, and does not wait unless `waitMs` (default here: 0
   * ms) says so. A store that failed is never taken for a busy lock: that throws, and so does all else that
   * {@link acquire} throws.
   *
   * @example
   * await using lease = await locks.tryAcquire('search-index');
   * if (!lease) return 'running elsewhere';
   */
  async tryAcquire(key: LockKeys, options?: ForAcquire): Promise<Lease | null> {
    return this.manager.tryAcquire(
      checkKeys(key),
      callOf(options, this.tryDefaults, 'tryAcquire', this.manager.settings),
    );
  }

  /**
   * Returns the permits of a key: `permits` callers, over all processes, may hold one each. See {@link Permits}. Sends no
   * request.
   *
   * @param options.permits how many there are, 1 to 1,000,000. Where callers give different numbers, the last one decides.
   *   Default: the number that the store has for the key
   * @throws LockKeyError for a value that cannot be a key
   * @throws LockConfigurationError for another number or option
   *
   * @example
   * await locks.permits('crm:acme', { permits: 3 }).withPermit(() => crm.sync('acme'));
   */
  permits(key: string, options?: PermitsOptions): Permits {
    const { manager, permitDefaults } = this;
    return new Permits(
      manager,
      checkOneKey(key, 'permits'),
      callOf(options, permitDefaults, 'permits', manager.settings),
    );
  }

  /**
   * The counting semaphore of that key, shared with Redisson's `RSemaphore` of the same name. Its permits have no owner
   * and no lease: see {@link Semaphore}. Asks nobody. Throws `LockKeyError` for what cannot be a key, and
   * `LockConfigurationError` when the store has no semaphores.
   *
   * @example await locks.semaphore('printers').acquire();
   */
  semaphore(key: string): Semaphore {
    return this.manager.semaphore(checkOneKey(key, 'semaphore'));
  }

  /**
   * The countdown latch of that key, shared with Redisson's `RCountDownLatch` of the same name: see
   * {@link CountDownLatch}. Asks nobody. Throws `LockKeyError` for what cannot be a key, and `LockConfigurationError` when
   * the store has no latches.
   *
   * @example await locks.countDownLatch('imported').wait({ waitMs: 60_000 });
   */
  countDownLatch(key: string): CountDownLatch {
    return this.manager.countDownLatch(checkOneKey(key, 'countDownLatch'));
  }

  /**
   * Who holds the key now, in whichever process, as what kind of lock, and for how many ms still (`Infinity` for a hold
   * of Java without an end); null when nobody does. Of several holders (readers, permits) it names the
   * first 100. `waiting` has the owners in line, where the kind has one: the first 100 of a fair lock, 64 of the others. Throws
   * `LockStoreError`, and `LockKeyError` for what cannot be a key.
   *
   * @example const [holder] = (await locks.inspect('order:42'))?.holders ?? [];
   */
  async inspect(key: string): Promise<KeyState | null> {
    checkKey(key);
    return this.manager.inspect(key);
  }

  /**
   * Whether anybody holds the key at this moment: the lock, one reader or one permit at least. For people and dashboards: it may
   * be over when you read it. Throws like {@link inspect}.
   *
   * @example if (await locks.isLocked('nightly')) return 'still running';
   */
  async isLocked(key: string): Promise<boolean> {
    return (await this.inspect(key)) !== null;
  }

  /**
   * Ends whatever holds there are, of whatever kind (all permits of the key), and wakes who waits. True when there was
   * one. For people: a holder elsewhere learns of it at its next renewal, and works on until then. Throws
   * `LockStoreError`, and `LockKeyError` for what cannot be a key.
   *
   * @example const wasHeld = await locks.forceUnlock('order:42');
   */
  async forceUnlock(key: string): Promise<boolean> {
    checkKey(key);
    return this.manager.forceUnlock(key);
  }

  /**
   * The locks and permits that this service holds at this moment, one entry for each hold; a nested call has none of
   * its own. Asks nobody and never throws.
   *
   * @example const oldest = locks.held().sort((a, b) => b.heldMs - a.heldMs)[0];
   */
  held(): HeldLock[] {
    return this.manager.held();
  }

  /**
   * Sizes of all that could grow; all zero when nothing is held and nobody waits. Asks nobody and never throws.
   *
   * @example metrics.gauge('lock_waits_and_leases', locks.usage.leases);
   */
  get usage(): LockUsage {
    return this.manager.usage;
  }

  /**
   * Resolves when the store answers; throws `LockStoreError` otherwise, with Redis after `commandTimeoutMs` at the
   * latest. For health checks.
   *
   * @example await locks.ping();
   */
  ping(): Promise<void> {
    return this.manager.ping();
  }

  /** @internal What a section of `withLocks` asks of this service. */
  callOfSection(options: SectionOptions): LockCall {
    return callOf(options, this.defaults, 'withLock', this.manager.settings);
  }

  /** @internal See {@link LockManager.acquireOneOfSeveral}. */
  acquireOneOfSeveral(key: string, call: LockCall, alone: boolean): Promise<OneOfSeveral> {
    return this.manager.acquireOneOfSeveral(key, call, alone);
  }

  /** @internal See {@link LockManager.openSection}. */
  openSection(lease: Lease, enclosing: Section | undefined): Section {
    return this.manager.openSection(lease, enclosing);
  }

  /** @internal What `<<$name>>` in a key template stands for. */
  contextValue(name: string): unknown {
    const values = this.context?.();
    return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
  }

  /**
   * Listens to an event of {@link LockEvents}; the returned function takes the listener off. One that throws harms
   * nobody: that is a log line. Throws `LockConfigurationError` for an event that there is not, or a listener that is
   * no function.
   *
   * @example const stop = locks.on('lost', ({ key, reason }) => metrics.count('lock_lost', { key, reason }));
   */
  on<E extends keyof LockEvents>(event: E, listener: LockEventListener<E>): () => void {
    return this.manager.on(event, listener);
  }
}

/**
 * Locks and permits, by hand. Injected by its class wherever `RedisLockModule` is imported once.
 *
 * @example constructor(private readonly locks: LockService) {}
 */
const shared = processWide('LockService', LockService);
type shared = LockService;
// The class itself has the public name, because editors and compiler messages show that of the class.
export { shared as LockService };
