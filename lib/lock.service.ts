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
  PermitOptions,
  PermitSectionOptions,
  SectionOptions,
  Without,
} from './core/settings/acquire-options.js';
import { defaultCall, resolveCall, type CallName, type LockCall } from './core/settings/lock-call.js';
import { LockConfigurationError } from './core/errors/lock.errors.js';
import { checkKey, checkKeys, checkOneKey } from './key/key-check.js';
import { processWide } from './core/process-wide.js';

/**
 * One key, or several that are taken all or none, each of which may have a mode of its own. Used verbatim; see `lockKey` for
 * templates. Of one that is given in both modes the write lock is taken.
 */
export type LockKeys = string | readonly (string | KeyWithMode)[];

type ForAcquire = AcquireOptions & Without<'onLost' | 'awaitRelease' | 'onBusy' | 'service' | 'permits'>;
type ForSection = SectionOptions & Without<'onBusy' | 'service' | 'permits'>;
type ForPermit = PermitOptions &
  Without<'onLost' | 'awaitRelease' | 'onBusy' | 'service' | 'reentrant' | 'mode'>;
type ForPermitSection = PermitSectionOptions & Without<'onBusy' | 'service' | 'reentrant' | 'mode'>;

/** The body of a generator runs when it is read, and that is after the section. */
export const checkedSection = <T extends object>(method: string, section: T): T => {
  if (!/Generator/.test(Object.prototype.toString.call(section))) return section;
  throw new LockConfigurationError(
    `${method} was given a generator function, whose body would run after the ${method === 'withPermit' ? 'permit' : 'lock'}. ` +
      `Put ${method === 'withPermit' ? '@Limited' : '@Locked'} on a method that is one, ` +
      'or read it inside the section.',
  );
};

@Injectable()
class LockService {
  /** @internal The name of its module; empty without one. */
  readonly moduleName: string;
  private readonly defaults: LockCall;
  private readonly tryDefaults: LockCall;
  private readonly permitDefaults: LockCall;
  private readonly tryPermitDefaults: LockCall;

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
    this.tryPermitDefaults = { ...this.permitDefaults, waitMs: 0 };
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
      const [call, section] = this.callAndSection('withLock', optionsOrSection, maybeSection, this.defaults);
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
    const [call, section] = this.callAndSection(
      'tryWithLock',
      optionsOrSection,
      maybeSection,
      this.tryDefaults,
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
    return this.manager.acquire(checkKeys(key), this.callOf(options, this.defaults, 'acquire'));
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
    return this.manager.tryAcquire(checkKeys(key), this.callOf(options, this.tryDefaults, 'tryAcquire'));
  }

  /**
   * Runs `section` with one of the key's permits, of which there are `permits`, and gives it back, whatever happens. As
   * {@link withLock} otherwise, but for one key, without a fencing token, and a permit inside another of the same key
   * is one more. Options and their defaults: {@link PermitSectionOptions}; durations are whole ms.
   *
   * Throws like {@link withLock}; `LockStoreError` also when no number is given and the store has none.
   *
   * @example
   * await locks.withPermit(lockKey('crm:<<tenant>>', { tenant }), { permits: 3 }, () => crm.sync(tenant));
   */
  withPermit<T>(key: string, section: LockSection<T>): Promise<T>;
  withPermit<T>(key: string, options: ForPermitSection | undefined, section: LockSection<T>): Promise<T>;
  async withPermit<T>(
    key: string,
    optionsOrSection: PermitSectionOptions | LockSection<T> | undefined,
    maybeSection?: LockSection<T>,
  ): Promise<T> {
    const [call, section] = this.callAndSection(
      'withPermit',
      optionsOrSection,
      maybeSection,
      this.permitDefaults,
    );
    return this.manager.withLock([checkOneKey(key, 'withPermit')], call, section);
  }

  /**
   * Takes one of the key's permits until `release()` or the end of the `await using` block. Options and their defaults:
   * {@link PermitOptions}; durations are whole ms. Throws like {@link withPermit}. The lease has no fencing token:
   * several may have a permit at once.
   *
   * @example await using lease = await locks.acquirePermit('render', { permits: 2 });
   */
  async acquirePermit(key: string, options?: ForPermit): Promise<Lease> {
    return this.manager.acquire(
      [checkOneKey(key, 'acquirePermit')],
      this.callOf(options, this.permitDefaults, 'acquirePermit'),
    );
  }

  /**
   * Like {@link acquirePermit}, but answers null when all permits are taken, and does not wait unless `waitMs` (default
   * here: 0 ms) says so. Throws all else that {@link acquirePermit} throws.
   *
   * @example
   * await using lease = await locks.tryAcquirePermit('render', { permits: 2 });
   * if (!lease) return 'busy';
   */
  async tryAcquirePermit(key: string, options?: ForPermit): Promise<Lease | null> {
    return this.manager.tryAcquire(
      [checkOneKey(key, 'tryAcquirePermit')],
      this.callOf(options, this.tryPermitDefaults, 'tryAcquirePermit'),
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

  private callAndSection<T>(
    method: 'withLock' | 'tryWithLock' | 'withPermit',
    optionsOrSection: PermitSectionOptions | SectionOptions | LockSection<T> | undefined,
    maybeSection: LockSection<T> | undefined,
    defaults: LockCall,
  ): [LockCall, LockSection<T>] {
    if (typeof optionsOrSection === 'function') {
      if (maybeSection === undefined) return [defaults, checkedSection(method, optionsOrSection)];
      throw new LockConfigurationError(
        `${method} takes its options before the section: ${method}(key, options, fn).`,
      );
    }
    if (typeof maybeSection !== 'function') {
      throw new LockConfigurationError(`${method} needs a function to run: ${method}(key, options, fn).`);
    }
    return [this.callOf(optionsOrSection, defaults, method), checkedSection(method, maybeSection)];
  }

  /** @internal What a section of `withLocks` asks of this service. */
  callOfSection(options: SectionOptions): LockCall {
    return this.callOf(options, this.defaults, 'withLock');
  }

  /** @internal See {@link LockManager.acquireOneOfSeveral}. */
  acquireOneOfSeveral(key: string, call: LockCall, alone: boolean): Promise<OneOfSeveral> {
    return this.manager.acquireOneOfSeveral(key, call, alone);
  }

  /** @internal See {@link LockManager.openSection}. */
  openSection(lease: Lease, enclosing: Section | undefined): Section {
    return this.manager.openSection(lease, enclosing);
  }

  private callOf(
    options: SectionOptions | PermitSectionOptions | undefined,
    defaults: LockCall,
    name: CallName,
  ): LockCall {
    return options === undefined ? defaults : resolveCall(options, defaults, name, this.manager.settings);
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
