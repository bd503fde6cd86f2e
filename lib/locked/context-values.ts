import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { lockedMethodsOf, prototypesOf } from './lock-binding.js';

/** Sources of the values for `<<$name>>` in keys. */
export interface ContextSources {
  /** Whether the module has a `context` option. */
  readonly context: boolean;
  /** Whether a lock module of the app has its interceptor on. */
  readonly request: boolean;
}

/**
 * Rejects a locked method whose key has a `<<$name>>` without a source of its value. The values that `context` returns
 * are known only at a call.
 *
 * @throws LockConfigurationError that names the method, the placeholder and the missing option
 */
export const checkContextValues = (
  instance: object,
  service: string | undefined,
  sources: ContextSources,
): void => {
  for (const { prototype, method } of lockedMethodsOf(instance)) {
    if (method.service !== service || isOverridden(instance, prototype, method.name)) continue;
    for (const { text, root } of method.contextPlaceholders) {
      if (root === '$request' ? sources.request : sources.context) continue;
      throw new LockConfigurationError(
        `${prototype.constructor.name}.${String(method.name)}: the key has ${text}, which never has a value. ` +
          (root === '$request'
            ? `Values of the request come from the interceptor, and RedisLockModule has interceptor: false`
            : `RedisLockModule has no context option: add context: () => ({ ${root.slice(1)}: … }). Values of the HTTP ` +
              `request are <<$request…>>`) +
          '.',
      );
    }
  }
};

/** Returns whether a class below has a method of the same name. */
export const isOverridden = (instance: object, prototype: object, name: PropertyKey): boolean =>
  prototypesOf(instance).find((one) => Object.hasOwn(one, name)) !== prototype;
