import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { lockedMethodsOf, prototypesOf } from './lock-binding.js';

/**
 * Rejects a locked method whose key has a `<<$name>>`, for a module without the option `context`.
 *
 * @throws LockConfigurationError that names the method, the placeholder and the missing option
 */
export const refuseContextValues = (instance: object, service: string | undefined): void => {
  for (const { prototype, method } of lockedMethodsOf(instance)) {
    if (method.service !== service || isOverridden(instance, prototype, method.name)) continue;
    for (const { text, root } of method.contextPlaceholders) {
      throw new LockConfigurationError(
        `${prototype.constructor.name}.${String(method.name)}: the key has ${text}, which never has a value. ` +
          `RedisLockModule has no context option: add context: () => ({ ${root.slice(1)}: … }).`,
      );
    }
  }
};

/** Returns whether a class below has a method of the same name. */
export const isOverridden = (instance: object, prototype: object, name: PropertyKey): boolean =>
  prototypesOf(instance).find((one) => Object.hasOwn(one, name)) !== prototype;
