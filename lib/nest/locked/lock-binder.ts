import type { DiscoveryService, ModulesContainer } from '@nestjs/core';
import type { LockLogger } from '../../core/report/lock-events.js';
import { isArray } from '../../core/util/describe.js';
import type { LockService } from '../service/lock.service.js';
import { isOverridden, refuseContextValues } from './context-values.js';
import { bindService, lockedMethodsOf, serviceOf } from './lock-binding.js';
import { warningsOf } from './warnings-of.js';

/** Part of Nest's wrapper of a provider or controller that is used here. */
export interface InstanceWrapper {
  readonly instance: unknown;
  readonly isNotMetatype?: boolean;
  /** Class or factory; null for a value. */
  readonly metatype?: { readonly name: string; readonly prototype?: unknown } | null;
  readonly isTransient?: boolean;
  /** Returns false for what is made for each request. */
  isDependencyTreeStatic?(): boolean;
}

/** Returns what may have locked methods. Discovery leaves out guards, pipes and interceptors that only a decorator names. */
export const wrappersOf = (discovery: DiscoveryService, modules: ModulesContainer): InstanceWrapper[] => [
  ...discovery.getProviders(),
  ...discovery.getControllers(),
  ...[...modules.values()].flatMap(({ injectables }) => [...injectables.values()]),
];

/** Checks what only the module knows: values for `<<$name>>`, and whether its service takes the options. */
const checkUse = (
  instance: object,
  name: string | undefined,
  locks: LockService,
  hasContext: boolean,
): void => {
  if (!hasContext) refuseContextValues(instance, name);
  for (const { prototype, method } of lockedMethodsOf(instance)) {
    if (method.service !== name || isOverridden(instance, prototype, method.name)) continue;
    method.checkOptions(locks);
  }
};

/**
 * Binds the lock service, when the app starts, to objects that Nest did not create from a class (`useFactory`,
 * `useValue`, also in an array). Warns of methods that are probably not locked as intended.
 *
 * @param hasContext whether `<<$name>>` can have a value; undefined: neither that nor the options are checked
 */
export const bindAll = (
  wrappers: readonly InstanceWrapper[],
  name: string | undefined,
  locks: LockService,
  logger: LockLogger,
  hasContext?: boolean,
): void => {
  const checked = new Set<object>();
  for (const { instance: provided } of wrappers) {
    for (const instance of isArray(provided) ? provided : [provided]) {
      if (typeof instance !== 'object' || instance === null) continue;
      const services = lockedMethodsOf(instance).map(({ method }) => method.service);
      if (!services.includes(name)) continue;
      if (hasContext !== undefined) checkUse(instance, name, locks, hasContext);
      if (!serviceOf(instance, name)) bindService(instance, name, locks);
      for (const warning of warningsOf(instance, name, checked)) logger.warn(warning);
    }
  }
};
