import { bindService, lockedMethodsOf } from '../nest/locked/lock-binding.js';
import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { checkObject } from '../core/settings/option-checks.js';
import { LockService } from '../nest/service/lock.service.js';
import { TestingLockService, TestingProcesses } from './testing-lock.service.js';
import { resolveTestingSettings, type TestingMode, type TestingSettings } from './testing-options.js';

/**
 * Creates a lock service on a memory store, without Nest.
 *
 * @param mode `memory`: locks exclude each other in this process. `off`: every lock and permit is granted at once.
 * Default: `memory`
 * @param settings as for `forRoot`, such as `waitMs`, with the same defaults, and `maxWaitMs`; durations are whole ms
 * @throws LockConfigurationError for an unknown mode or an invalid setting
 *
 * @example
 * const orders = bindLocks(new OrderService(), createTestingLocks());
 */
export const createTestingLocks = (
  mode: TestingMode = 'memory',
  settings: TestingSettings = {},
): TestingLockService => new TestingLockService(new TestingProcesses(resolveTestingSettings(mode, settings)));

/**
 * Gives a lock service to an object that Nest did not create, so that its `@Locked` and `@Limited` methods work.
 * Returns the object.
 *
 * @throws LockConfigurationError when the object has no such method
 *
 * @example const shop = bindLocks(new ShopService(stock), createTestingLocks());
 */
export const bindLocks = <T extends object>(instance: T, locks: LockService): T => {
  checkObject('The instance of bindLocks', 'an object of a class with @Locked or @Limited methods', instance);
  // A mock of the service may be a function.
  if (typeof locks !== 'function') checkObject('The locks of bindLocks', 'a lock service', locks);
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
