import type { LockLogger } from '../core/lock-events.js';
import type { LockService } from '../lock.service.js';
import { bindService, lockedMethodsOf, serviceOf } from './lock-binding.js';

/** What Nest knows of a provider or controller. */
interface InstanceWrapper {
  readonly instance: unknown;
  readonly isNotMetatype?: boolean;
}

/**
 * At start-up: gives the service to objects that Nest did not make itself (`useFactory`, `useValue`), and warns of
 * methods that something was wrapped around above `@Locked`, because that may be a transaction.
 */
export const bindAll = (
  wrappers: readonly InstanceWrapper[],
  name: string | undefined,
  locks: LockService,
  logger: LockLogger,
): void => {
  const checked = new Set<object>();
  for (const { instance } of wrappers) {
    if (typeof instance !== 'object' || instance === null) continue;
    for (const { prototype, method } of lockedMethodsOf(instance)) {
      if (method.service !== name) continue;
      if (!serviceOf(instance, name)) bindService(instance, name, locks);
      if (checked.has(method)) continue;
      checked.add(method);
      const current = Object.getOwnPropertyDescriptor(prototype, method.name)?.value as unknown;
      if (current === method.wrapper) continue;
      logger.warn(
        `${prototype.constructor.name}.${String(method.name)}: a decorator above @Locked wraps the method. If it is ` +
          `a transaction, the lock is released before the commit: put @Locked on top.`,
      );
    }
  }
};
