import { LockConfigurationError } from '../core/errors/lock.errors.js';
import type { Lease } from '../core/lease/lease.js';
import { LockManager } from '../core/service/lock-manager.js';
import { LockService } from '../nest/service/lock.service.js';
import type { LockMode } from '../core/settings/acquire-options.js';
import { MemoryStore } from '../stores/memory/memory.store.js';
import type { MemorySpace } from '../stores/memory/memory-space.js';
import { checkObject } from '../core/settings/option-checks.js';
import { checkNames, type Names } from '../core/settings/option-names.js';
import { SILENT, testingRuntime } from './testing-runtime.js';
import type { ResolvedTestingOptions } from './testing-options.js';

/** Options of a hold from outside. `undefined` keeps the default. */
export interface OutsideHoldOptions {
  /** Kind of lock. Default: `exclusive`. */
  readonly mode?: LockMode | undefined;
  /** Number of permits of the key: takes one of them instead of a lock. Not together with `mode`. Default: a lock. */
  readonly permits?: number | undefined;
  /** Maximum wait for the key, in ms. Default: the module's `waitMs` (5,000). */
  readonly waitMs?: number | undefined;
}

const HOLD_NAMES: Names<OutsideHoldOptions> = { mode: true, permits: true, waitMs: true };

/** Another process on the store of a test: it has its own owners, and shares no call with the app. */
export class OutsideProcess {
  private started: { readonly manager: LockManager; readonly locks: LockService } | undefined;
  private readonly leases = new Set<Lease>();
  private closing: Promise<void> | undefined;

  constructor(
    private readonly space: MemorySpace,
    private readonly options: ResolvedTestingOptions,
  ) {}

  /** Its lock service. It is created at the first use, so that a test that needs none has none. */
  locks(method: string): LockService {
    if (this.options.mode === 'off') {
      throw new LockConfigurationError(
        `${method} needs mode 'memory': with mode 'off' every lock is granted at once, and holds exclude no caller.`,
      );
    }
    if (this.closing) throw new LockConfigurationError(`${method} was called after the end of the app.`);
    this.started ??= this.start();
    return this.started.locks;
  }

  async hold(key: string, options: OutsideHoldOptions = {}): Promise<Lease> {
    const locks = this.locks('testing.hold');
    checkObject('The options of testing.hold', 'an object such as { waitMs: 100 }', options);
    checkNames(options, 'testing.hold', HOLD_NAMES);
    const { permits, ...rest } = options;
    if (permits !== undefined && rest.mode !== undefined) {
      throw new LockConfigurationError(
        'testing.hold was given both mode and permits: a permit has no mode. Keep the one that is meant.',
      );
    }
    const lease = await (permits === undefined
      ? locks.acquire(key, rest)
      : locks.permits(key, { permits }).acquire({ waitMs: rest.waitMs }));
    this.leases.add(lease);
    return lease;
  }

  /** Releases what a test still holds. A further call returns the same promise. */
  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  private async end(): Promise<void> {
    if (!this.started) return;
    const { manager } = this.started;
    manager.refuseNew();
    await Promise.all([...this.leases].map((lease) => manager.end(lease)));
    await manager.close();
  }

  private start(): { readonly manager: LockManager; readonly locks: LockService } {
    const settings = { ...this.options.settings, appName: 'outside' };
    const store = new MemoryStore({ shared: this.space });
    const manager = new LockManager(store, settings, SILENT, testingRuntime());
    return { manager, locks: new LockService(manager) };
  }
}
