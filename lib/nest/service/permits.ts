import { callAndSection, callOf } from './call-arguments.js';
import type { Lease } from '../../core/lease/lease.js';
import type { LockManager, LockSection } from '../../core/service/lock-manager.js';
import { printsOnly } from '../../core/util/printing.js';
import type { PermitState } from '../../core/seam/reply.js';
import type { PermitOptions, PermitSectionOptions, Without } from '../../core/settings/acquire-options.js';
import type { LockCall } from '../../core/settings/lock-call.js';

type ForPermit = PermitOptions &
  Without<'permits' | 'onLost' | 'awaitRelease' | 'onBusy' | 'service' | 'inside' | 'mode'>;
type ForPermitSection = PermitSectionOptions & Without<'permits' | 'onBusy' | 'service' | 'inside' | 'mode'>;

/**
 * The permits of one key: a number of callers, over all processes, may hold one each. Every permit has a lease, which the
 * watchdog renews; the permit of a crashed holder is free after its lease. The layout in Redis is the one of Redisson's
 * `RPermitExpirableSemaphore`.
 *
 * Made by `LockService.permits`. It keeps nothing itself: make one for each call, or keep one.
 *
 * @example
 * const renderers = locks.permits('render', { permits: 2 });
 * await renderers.withPermit(() => render(page));
 */
export class Permits {
  static {
    printsOnly(this, ({ manager, key }) => ({ key: manager.shown(key) }));
  }

  /** @internal Made by `LockService.permits`. */
  constructor(
    private readonly manager: LockManager,
    /** The key as the caller wrote it, without the prefix. */
    readonly key: string,
    private readonly defaults: LockCall,
  ) {}

  /**
   * Acquires a permit, runs `section`, and releases the permit, also when the section fails. Resolves with the result of
   * the section; its errors pass untouched. A call inside another of the same key takes a second permit. The lease has no
   * fencing token, since several callers hold a permit at once.
   *
   * Options and their defaults: {@link PermitSectionOptions}.
   *
   * @throws LockNotAcquiredError when no permit is free within `waitMs`
   * @throws LockStoreError when the store fails; also without a number of permits, here and in the store
   * @throws LockAbortedError, LockLostError, LockConfigurationError as `LockService.withLock` does
   *
   * @example
   * await locks.permits(lockKey('crm:<<tenant>>', { tenant }), { permits: 3 }).withPermit(() => crm.sync(tenant));
   */
  withPermit<T>(section: LockSection<T>): Promise<T>;
  withPermit<T>(options: ForPermitSection | undefined, section: LockSection<T>): Promise<T>;
  async withPermit<T>(
    optionsOrSection: PermitSectionOptions | LockSection<T> | undefined,
    maybeSection?: LockSection<T>,
  ): Promise<T> {
    const { manager, key } = this;
    const [call, section] = callAndSection(
      'withPermit',
      optionsOrSection,
      maybeSection,
      { ...this.defaults, label: 'withPermit' },
      manager.settings,
    );
    return manager.withLock([key], call, section);
  }

  /**
   * Acquires a permit until `release()` or the end of the `await using` block. Options and their defaults:
   * {@link PermitOptions}.
   *
   * @throws the errors of {@link withPermit}
   *
   * @example await using lease = await locks.permits('render', { permits: 2 }).acquire();
   */
  async acquire(options?: ForPermit): Promise<Lease> {
    const { manager, key } = this;
    const defaults = { ...this.defaults, label: 'permits().acquire' };
    return manager.acquire([key], callOf(options, defaults, 'permits().acquire', manager.settings));
  }

  /**
   * Acquires a permit like {@link acquire}, but resolves with null when all permits are taken. Does not wait unless `waitMs`
   * (default here: 0 ms) says so.
   *
   * @throws the other errors of {@link acquire}
   *
   * @example
   * await using lease = await locks.permits('render', { permits: 2 }).tryAcquire();
   * if (!lease) return 'busy';
   */
  async tryAcquire(options?: ForPermit): Promise<Lease | null> {
    const { manager, key } = this;
    const defaults = { ...this.defaults, waitMs: 0, label: 'permits().tryAcquire' };
    return manager.tryAcquire([key], callOf(options, defaults, 'permits().tryAcquire', manager.settings));
  }

  /**
   * Resolves with the number of permits in the store, how many of them are free, and the holders of the others. Resolves
   * with null when the store has no number for the key. For operators and dashboards: it may be out of date when you read it.
   *
   * @throws LockStoreError when the store fails
   *
   * @example const { free = 0 } = (await locks.permits('render').inspect()) ?? {};
   */
  inspect(): Promise<PermitState | null> {
    return this.manager.permits(this.key);
  }
}
