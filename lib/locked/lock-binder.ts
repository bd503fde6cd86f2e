import type { LockLogger } from '../core/lock-events.js';
import { isArray } from '../core/errors/describe.js';
import type { LockService } from '../lock.service.js';
import { checkContextValues, type ContextSources } from './context-values.js';
import { bindService, lockedMethodsOf, serviceOf } from './lock-binding.js';
import { warningsOf } from './warnings-of.js';

/** Part of Nest's wrapper of a provider or controller that is used here. */
interface InstanceWrapper {
  readonly instance: unknown;
  readonly isNotMetatype?: boolean;
}

/**
 * Binds the lock service, when the app starts, to objects that Nest did not create from a class (`useFactory`,
 * `useValue`, also in an array). Warns of methods that are probably not locked as intended.
 *
 * @param sources of values for `<<$name>>`; undefined: they are not checked
 */
export const bindAll = (
  wrappers: readonly InstanceWrapper[],
  name: string | undefined,
  locks: LockService,
  logger: LockLogger,
  sources?: ContextSources,
): void => {
  const checked = new Set<object>();
  for (const { instance: provided } of wrappers) {
    for (const instance of isArray(provided) ? provided : [provided]) {
      if (typeof instance !== 'object' || instance === null) continue;
      const services = lockedMethodsOf(instance).map(({ method }) => method.service);
      if (!services.includes(name)) continue;
      if (sources) checkContextValues(instance, name, sources);
      if (!serviceOf(instance, name)) bindService(instance, name, locks);
      for (const warning of warningsOf(instance, name, checked)) logger.warn(warning);
    }
  }
};
