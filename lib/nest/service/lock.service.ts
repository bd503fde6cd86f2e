import { Injectable } from '@nestjs/common';
import type { InspectedKey } from '../../core/holders/holders.js';
import type { Lease } from '../../core/lease/lease.js';
import type { HeldLock, LockUsage, OneOfSeveral } from '../../core/service/held-locks.js';
import type { ListOptions, LockList } from '../../core/service/listing.js';
import type { LockEventListener, LockEvents } from '../../core/report/lock-events.js';
import type { CountDownLatch } from '../../core/objects/count-down-latch.js';
import type { Semaphore } from '../../core/objects/semaphore.js';
import type { Attempt, LockManager, LockSection } from '../../core/service/lock-manager.js';
import type { Section } from '../../core/nesting/section.js';
import { printsOnly } from '../../core/util/printing.js';
import type { ShownKey } from '../../core/util/shown-key.js';
import type {
  AcquireOptions,
  KeyWithMode,
  PermitsOptions,
  SectionOptions,
  Without,
} from '../../core/settings/acquire-options.js';
import type { AnyCallOptions, LockCall } from '../../core/settings/lock-call.js';
import { named } from '../../core/settings/option-checks.js';
import { checkKey, checkKeys, checkOneKey } from '../../key/key-check.js';
import { callAndSection, callOf, methodDefaults, type MethodDefaults } from './call-arguments.js';
import type { Candidate, LeaderFunction } from '../leader/candidate.js';
import { Candidates } from '../leader/candidates.js';
import type { FoundLeader, LeaderMethod, LeadOptions } from '../leader/leader.options.js';
import { Permits } from './permits.js';
import { sharedByBuilds } from '../../core/util/both-builds.js';

/**
 * One key, or several that are acquired all or none. Each key may have its own mode; a key listed in both modes is
 * acquired for writing. Keys are used verbatim; see `lockKey` for templates.
 */
export type LockKeys = string | readonly (string | KeyWithMode)[];

/** Modes of the keys of a method; undefined for a key with the mode of the call. */
type Modes = readonly KeyWithMode['mode'][];
type ForAcquire = AcquireOptions & Without<'onLost' | 'awaitRelease' | 'onBusy' | 'service' | 'permits'>;
type ForSection = SectionOptions & Without<'onBusy' | 'service' | 'permits'>;

@Injectable()
class LockService {
  static {
    printsOnly(this, ({ manager: { place } }) => ({ place }));
  }

  /** @internal What orders equal keys of several services: what they lock in, the same in all processes. */
  readonly order: string;
  private readonly defaults: MethodDefaults;
  /** @internal */
  readonly candidates: Candidates;

  /** Injected by Nest; do not call it. */
  constructor(
    private readonly manager: LockManager,
    private readonly context?: () => Record<string, unknown>,
    moduleName = '',
    contend = true,
  ) {
    this.candidates = new Candidates(manager, contend);
    this.order = [manager.place, manager.settings.keyPrefix, moduleName, manager.instanceId].join('\0');
    this.defaults = methodDefaults(manager.settings);
  }

  /**
   * Acquires the lock, runs `section`, and releases the lock, also when `section` throws. Resolves with the result of
   * `section`, or rejects with its error. A failed release or a lost lock changes neither: both are reported by an
   * event and a log line. By default the caller waits for the release; with `awaitRelease: false` it does not.
   *
   * Options and defaults: {@link SectionOptions}. Durations are whole ms.
   *
   * Inside a section of the same key the call is an ordinary caller, unless it has `inside: lease`.
   *
   * @throws LockNotAcquiredError when the wait times out, and when the call cannot nest
   * @throws LockStoreError when the store fails
   * @throws LockAbortedError when `signal` aborts or the app stops
   * @throws LockKeyError for an invalid key
   * @throws LockConfigurationError for an invalid option or section
   * @throws LockLostError when the lock is lost before the section begins, when the call is nested in a lost lock on
   * the same key, and with `onLost: 'throw'` after the section
   *
   * @example
   * await locks.withLock(lockKey('order:<<userId>>', { userId }), (lease) => pay(userId, lease.fencingToken));
   */
  withLock<T>(key: LockKeys, section: LockSection<T>): Promise<T>;
  withLock<T>(key: LockKeys, options: ForSection | undefined, section: LockSection<T>): Promise<T>;
  withLock<T>(
    key: LockKeys,
    optionsOrSection: SectionOptions | LockSection<T> | undefined,
    maybeSection?: LockSection<T>,
  ): Promise<T> {
    // Not async: the manager's promise is returned as it is. A second promise costs as much as the rest of this method.
    try {
      const [call, section] = callAndSection(
        'withLock',
        optionsOrSection,
        maybeSection,
        this.defaults.withLock,
        this.manager.settings,
      );
      return this.manager.withLock(checkKeys(key), call, section);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Like {@link withLock}, but resolves with `{ ran: false }` when the lock is taken. `waitMs` defaults to 0. A store
   * that fails is never reported as "taken": that throws, like every other error of {@link withLock}.
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
      this.defaults.tryWithLock,
      this.manager.settings,
    );
    return this.manager.tryWithLock(checkKeys(key), call, section);
  }

  /**
   * Acquires the lock until `release()` or the end of the `await using` block. Options and defaults:
   * {@link AcquireOptions}. Durations are whole ms. Throws the errors of {@link withLock}.
   *
   * @example await using lease = await locks.acquire('report', { waitMs: 2_000 });
   */
  async acquire(key: LockKeys, options?: ForAcquire): Promise<Lease> {
    return this.manager.acquire(
      checkKeys(key),
      callOf(options, this.defaults.acquire, 'acquire', this.manager.settings),
    );
  }

  /**
   * Like {@link acquire}, but resolves with null when the lock is taken, or when others are queued for it. `waitMs`
   * defaults to 0. A store that fails is never reported as "taken": that throws, like every other error of
   * {@link acquire}.
   *
   * @example
   * await using lease = await locks.tryAcquire('search-index');
   * if (!lease) return 'running elsewhere';
   */
  async tryAcquire(key: LockKeys, options?: ForAcquire): Promise<Lease | null> {
    return this.manager.tryAcquire(
      checkKeys(key),
      callOf(options, this.defaults.tryAcquire, 'tryAcquire', this.manager.settings),
    );
  }

  /**
   * Makes this process a candidate for the leadership of `key`, and returns the candidate at once. `lead` is called each time
   * this process becomes the leader, and never again before its last call has settled. At most one process leads a key at a
   * time. See `Leader` for what ends a leadership, and for errors of `lead`. With `leaders: false` of the module the candidate
   * does not contend.
   *
   * Options and defaults: {@link LeadOptions}. Durations are whole ms. `lead` runs outside of the caller's asynchronous context.
   *
   * @throws LockKeyError for an invalid key
   * @throws LockConfigurationError for an invalid option or function, and if this service has a candidate for the key
   *
   * @example
   * const candidate = locks.lead('leader:index', ({ signal }) => index.watch({ signal }));
   * await candidate.stop();
   */
  lead(key: string, lead: LeaderFunction, options?: LeadOptions): Candidate {
    checkKey(key);
    const { defaults, manager } = this;
    manager.surroundings.finalKey(key);
    return this.candidates.add(key, lead, callOf(options, defaults.lead, 'lead', manager.settings));
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
    const { manager, defaults } = this;
    return new Permits(
      manager,
      checkOneKey(key, 'permits'),
      callOf(options, defaults.permits, 'permits', manager.settings),
    );
  }

  /**
   * Returns the counting semaphore of the key, shared with Redisson's `RSemaphore` of the same name. Its permits have
   * no owner and no lease; see {@link Semaphore}. Sends no request.
   *
   * @throws LockKeyError for an invalid key
   * @throws LockConfigurationError when the store has no semaphores
   *
   * @example await locks.semaphore('printers').acquire();
   */
  semaphore(key: string): Semaphore {
    return this.manager.semaphore(checkOneKey(key, 'semaphore'));
  }

  /**
   * Returns the countdown latch of the key, shared with Redisson's `RCountDownLatch` of the same name; see
   * {@link CountDownLatch}. Sends no request.
   *
   * @throws LockKeyError for an invalid key
   * @throws LockConfigurationError when the store has no latches
   *
   * @example await locks.countDownLatch('imported').wait({ waitMs: 60_000 });
   */
  countDownLatch(key: string): CountDownLatch {
    return this.manager.countDownLatch(checkOneKey(key, 'countDownLatch'));
  }

  /**
   * Resolves with the holders of the key in all processes, the kind of lock, and the ms that are left; null when the
   * key is free. `remainingMs` is `Infinity` for a Java hold without an end. At most 100 holders are listed. `waiting`
   * lists the queued owners, for kinds with a wait queue: at most 100 for a fair lock, 64 for the others.
   *
   * @throws LockStoreError when the store fails
   * @throws LockKeyError for an invalid key
   *
   * @example const [holder] = (await locks.inspect('order:42'))?.holders ?? [];
   */
  async inspect(key: string): Promise<InspectedKey | null> {
    checkKey(key);
    return this.manager.inspect(key);
  }

  /**
   * Resolves with true when the key is held: by a lock, or by at least one reader or permit. For people and dashboards:
   * the answer may be outdated when you read it. Throws the errors of {@link inspect}.
   *
   * @example if (await locks.isLocked('nightly')) return 'still running';
   */
  async isLocked(key: string): Promise<boolean> {
    checkKey(key);
    return this.manager.isLocked(key);
  }

  /**
   * Resolves with one page of the keys that have a holder in any process, or callers in their wait queue: their holders and
   * waiters, as {@link inspect} shows them. For people and dashboards. Repeat the call with its `cursor` until that is
   * undefined; a page may be empty before. A key that is acquired or released meanwhile may be missing.
   *
   * @throws LockConfigurationError for an invalid option, another cursor, and when the store cannot list its locks
   * @throws LockStoreError when the store fails
   *
   * @example
   * let page = await locks.list({ prefix: 'order:' });
   * for (;;) {
   *   for (const { key, kind, holders } of page.locks) console.log(key, kind, holders[0]?.owner);
   *   if (page.cursor === undefined) break;
   *   page = await locks.list({ prefix: 'order:', cursor: page.cursor });
   * }
   */
  list(options?: ListOptions): Promise<LockList> {
    return this.manager.list(options);
  }

  /**
   * Ends all holds of the key, of any kind (including all permits), and wakes its waiters. Resolves with true when
   * there was a hold. For people: a holder in another process learns of it at its next renewal, and works on until
   * then.
   *
   * @throws LockStoreError when the store fails
   * @throws LockKeyError for an invalid key
   *
   * @example const wasHeld = await locks.forceUnlock('order:42');
   */
  async forceUnlock(key: string): Promise<boolean> {
    checkKey(key);
    return this.manager.forceUnlock(key);
  }

  /**
   * Asks the holders of a lock, in any process, to release it. Resolves with true when there was one. A holder is told
   * by the event `revocation-requested` and by `lease.onRevocationRequested`, and decides itself; its lock stays valid.
   * ZooKeeper can ask, and so can the memory store in tests. In ZooKeeper, holders of Curator that are revocable hear it, too.
   *
   * @throws LockConfigurationError when the store cannot ask
   * @throws LockStoreError when the store fails, and for permits
   * @throws LockKeyError for an invalid key
   *
   * @example const isHeld = await locks.revoke('reindex'); // its holder may stop at the next page
   */
  async revoke(key: string): Promise<boolean> {
    checkKey(key);
    return this.manager.revoke(key);
  }

  /**
   * Returns the locks and permits that this service holds now, one entry for each hold. A nested call has no entry of
   * its own. Sends no request, and never throws.
   *
   * @example const oldest = locks.held().sort((a, b) => b.heldMs - a.heldMs)[0];
   */
  held(): HeldLock[] {
    return this.manager.held();
  }

  /**
   * Id of this service in the store, a UUID. The owners of its holds begin with it, except for permits: log it at start-up to
   * recognize them in `inspect()` and in Redis. Sends no request.
   *
   * @example logger.log(`locks of this process: ${locks.instanceId}`);
   */
  get instanceId(): string {
    return this.manager.instanceId;
  }

  /**
   * Counters for leak checks. All are zero when this service holds nothing and no caller waits. Sends no request, and
   * never throws.
   *
   * @example metrics.gauge('lock_waits_and_leases', locks.usage.leases);
   */
  get usage(): LockUsage {
    return this.manager.usage;
  }

  /**
   * Resolves when the store replies. For health checks.
   *
   * @throws LockStoreError when the store fails; with Redis at the latest after `commandTimeoutMs`
   *
   * @example await locks.ping();
   */
  ping(): Promise<void> {
    return this.manager.ping();
  }

  /** @internal Returns a key as logs, errors and events show it. */
  shown(key: string): ShownKey {
    return this.manager.shown(key);
  }

  /** @internal Returns the resolved options of a `withLocks` section. */
  callOfSection(options: SectionOptions): LockCall {
    return callOf(options, this.defaults.withLocks, 'withLocks', this.manager.settings);
  }

  /** @internal Throws `LockConfigurationError` for options of a decorator that this service or its store rejects. */
  checkSection(method: 'withLock' | '@Limited', options: AnyCallOptions, modes: Modes): void {
    const { defaults, manager } = this;
    const defaultsOfKind = method === 'withLock' ? defaults.withLock : defaults.permits;
    const call = callOf(options, defaultsOfKind, method, manager.settings);
    for (const mode of modes) manager.checkCall({ ...call, kind: mode ?? call.kind });
  }

  /** @internal Returns the call of `@Leader`. Throws for a key and options that this service or its store rejects. */
  leadCall({ where, key, options }: Pick<LeaderMethod, 'where' | 'key' | 'options'>): LockCall {
    const { defaults, manager } = this;
    manager.surroundings.finalKey(key);
    return named(where, () => callOf(options, defaults.lead, 'lead', manager.settings));
  }

  /** @internal Makes the object of a method with `@Leader` a candidate. */
  leadWith(found: FoundLeader): void {
    const { key, lead, instance, optionsOf } = found;
    const callNow = optionsOf && (() => this.leadCall({ ...found, options: optionsOf(instance, []) }));
    this.candidates.add(key, lead, this.leadCall(found), callNow);
  }

  /** @internal See {@link LockManager.acquireOneOfSeveral}. */
  acquireOneOfSeveral(key: string, call: LockCall, isOnlyLock: boolean): Promise<OneOfSeveral> {
    return this.manager.acquireOneOfSeveral(key, call, isOnlyLock);
  }

  /** @internal See {@link LockManager.openSection}. */
  openSection(lease: Lease, enclosing: Section | undefined): Section {
    return this.manager.openSection(lease, enclosing);
  }

  /** @internal Returns the value of `<<$name>>` in a key template. */
  contextValue(name: string): unknown {
    const values = this.context?.();
    return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
  }

  /**
   * Registers a listener for an event of {@link LockEvents}; returns a function that removes it. An error of a listener
   * is logged, and affects nothing else.
   *
   * @throws LockConfigurationError for an unknown event, or a listener that is no function
   *
   * @example const stop = locks.on('lost', ({ label, reason }) => metrics.count('lock_lost', { label, reason }));
   */
  on<E extends keyof LockEvents>(event: E, listener: LockEventListener<E>): () => void {
    return this.manager.on(event, listener);
  }
}

/**
 * Acquires locks and permits without a decorator. Inject it by its class; `RedisLockModule` is global.
 *
 * @example constructor(private readonly locks: LockService) {}
 */
const shared = sharedByBuilds('LockService', LockService);
type shared = LockService;
// The class itself has the public name, because editors and compiler messages show the name of the class.
export { shared as LockService };
