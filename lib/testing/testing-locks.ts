import { LockManager } from '../core/lock-manager.js';
import type { LockLogger } from '../core/lock-events.js';
import { resolveSettings, SETTING_NAMES, type LockSettingsInput } from '../core/settings/lock-settings.js';
import { reading } from '../core/settings/option-checks.js';
import { checkNames } from '../core/settings/option-names.js';
import type { ServiceGroup } from '../core/service-group.js';
import { systemRuntime } from '../core/runtime.js';
import { LockService } from '../lock.service.js';
import { bindService, lockedMethodsOf } from '../locked/lock-binding.js';
import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { formatValue } from '../core/errors/describe.js';
import { MemoryStore } from '../stores/memory/memory.store.js';

/** `memory`: locks exclude each other in this process. `off`: every lock and permit is granted at once. */
export type TestingMode = 'memory' | 'off';

/**
 * Returns a store for mode `off`, where every call gets its own key. One permit is then enough, also for calls that
 * leave the number to the store.
 */
const storeWithoutLimits = (): MemoryStore => {
  const store = new MemoryStore();
  const { permit } = store.kinds;
  const acquire = permit.acquire.bind(permit);
  permit.acquire = ({ of = 1, ...claim }) => acquire({ ...claim, of });
  return store;
};

const SILENT: LockLogger = { warn: () => undefined, log: () => undefined };

/** @internal */
export const createTestingManager = (
  mode: TestingMode,
  settings: LockSettingsInput,
  group?: ServiceGroup,
): LockManager => {
  if (mode !== 'memory' && mode !== 'off') {
    throw new LockConfigurationError(`mode must be 'memory' or 'off', but is ${formatValue(mode)}.`);
  }
  const resolved = { ...resolveSettings(settings), excludes: mode === 'memory' };
  // A plain clock: fake timers move it, and it must not take that for a sleeping machine.
  const runtime = systemRuntime({ now: () => performance.now() });
  return new LockManager(
    mode === 'off' ? storeWithoutLimits() : new MemoryStore(),
    resolved,
    SILENT,
    runtime,
    group,
  );
};

/**
 * Creates a lock service on a memory store, without Nest.
 *
 * @param mode `memory`: locks exclude each other in this process. `off`: every lock and permit is granted at once.
 * Default: `memory`
 * @param settings as for `forRoot`, such as `waitMs`, with the same defaults; durations are whole ms
 * @throws LockConfigurationError for an unknown mode or an invalid setting
 *
 * @example
 * const orders = bindLocks(new OrderService(), createTestingLocks());
 */
export const createTestingLocks = (
  mode: TestingMode = 'memory',
  settings: LockSettingsInput = {},
): LockService => {
  reading('The settings of createTestingLocks', () =>
    checkNames(settings, 'createTestingLocks', SETTING_NAMES),
  );
  return new LockService(createTestingManager(mode, settings));
};

/**
 * Gives a lock service to an object that Nest did not create, so that its `@Locked` and `@Limited` methods work.
 * Returns the object.
 *
 * @throws LockConfigurationError when the object has no such method
 *
 * @example const shop = bindLocks(new ShopService(stock), createTestingLocks());
 */
export const bindLocks = <T extends object>(instance: T, locks: LockService): T => {
  const methods = lockedMethodsOf(instance);
  if (methods.length === 0) {
    throw new LockConfigurationError(
      `bindLocks: ${instance.constructor.name} has no @Locked or @Limited method.`,
    );
  }
  for (const { method } of methods) {
    // A mock of the service has no check.
    if (locks instanceof LockService) method.checkOptions(locks);
    bindService(instance, method.service, locks);
  }
  return instance;
};
