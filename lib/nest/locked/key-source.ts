import { eachOnce } from '../../core/acquire/keys-of-call.js';
import type { KeyOfCall, KeyWithMode } from '../../core/settings/acquire-options.js';
import { isArray } from '../../core/util/describe.js';
import { LockConfigurationError, LockKeyError, withStackFromHere } from '../../core/errors/lock.errors.js';
import { asLabel } from '../../core/settings/label.js';
import type { LockCall } from '../../core/settings/lock-call.js';
import type { ShownKey } from '../../core/util/shown-key.js';
import { checkKeys, checkOneKey, elementsOf, fieldsOf, oneKey } from '../../key/key-check.js';
import { compileKey } from '../../key/key-template.js';
import { parameterNames } from '../../key/parameter-names.js';
import type { LockService } from '../service/lock.service.js';
import type { DecoratorName } from './check-use.js';
import { requestPath, requestPathOf } from './client-parameters.js';
import type { LockedMethod } from './lock-binding.js';
import type { AnyMethod, LockedMethodSpec } from './locked-method.js';

type KeyFunction = (this: unknown, ...args: unknown[]) => unknown;

/** Key as a decorator gets it. */
export type Key = string | readonly (string | KeyWithMode)[] | KeyFunction;

/**
 * Rejects a decorator without a key. The name of the method is no key: two classes or two apps may have the same name.
 *
 * @throws LockConfigurationError that shows a key
 */
export function checkKeyGiven(key: unknown, decorator: DecoratorName, where: string): asserts key is Key {
  if (typeof key === 'string' || typeof key === 'function' || isArray(key)) return;
  throw new LockConfigurationError(
    `\`${where}\`: give ${decorator} a key, such as \`${decorator}('nightly-report')\`; before 0.3 the key was \`'${where}'\``,
  );
}

interface KeySource extends Pick<LockedMethodSpec, 'keysOf'>, Pick<LockedMethod, 'contextPlaceholders'> {
  /** Modes of the keys, as far as they are known before a call; undefined for a key with the mode of the call. */
  readonly modes: readonly KeyWithMode['mode'][];
}

/** Returns how the keys of a call follow from its arguments. */
export const keySource = (
  { name, severalKeys }: { readonly name: DecoratorName; readonly severalKeys: boolean },
  key: Key,
  owner: object,
  property: string | symbol,
  original: AnyMethod,
  where: string,
): KeySource => {
  const withoutContext = (keysOf: LockedMethodSpec['keysOf']): KeySource => ({
    keysOf,
    contextPlaceholders: [],
    modes: [undefined],
  });
  if (typeof key === 'function') {
    return withoutContext(
      severalKeys
        ? (_locks, args, self) => checkKeys(key.apply(self, args), where)
        : (_locks, args, self) => [checkOneKey(key.apply(self, args), `${where}: ${name}`)],
    );
  }
  if (!severalKeys && isArray(key)) {
    throw new LockKeyError(`${where}: ${oneKey(name)}`);
  }
  const { templates, modes } = templatesOf(key, where);
  const compiled = compileKey(templates, {
    className: (owner as { name: string }).name,
    methodName: property,
    parameters: parameterNames(owner, property, original),
    requestPathOf: (index, path) => requestPath(owner, property, index, path),
  });
  const render = (locks: LockService, args: unknown[], self: unknown): string[] => {
    const contextValue = (of: string): unknown => locks.contextValue(of);
    try {
      return compiled.render(args, contextValue, (at, path) => requestPathOf(self, property, at, path));
    } catch (error) {
      // The template is deep below the caller.
      throw withStackFromHere(error);
    }
  };
  const { contextPlaceholders } = compiled;
  const keysOf = modes.some(Boolean)
    ? (locks: LockService, args: unknown[], self: unknown) => withModes(render(locks, args, self), modes)
    : render;
  return { keysOf, contextPlaceholders, modes };
};

/** Rejects a list of keys whose modes do not go with each other or with the call: every call would be rejected. */
export const checkModes = (key: Key, call: LockCall, where: string): void => {
  if (!isArray(key)) return;
  const { templates, modes } = templatesOf(key, where);
  eachOnce(withModes([templates].flat(), modes), call, (template) => template as ShownKey);
};

const withModes = (keys: readonly string[], modes: readonly KeyWithMode['mode'][]): KeyOfCall[] =>
  keys.map((key, i) => {
    const mode = modes[i];
    return mode ? { key, mode } : key;
  });

/** Returns the default label: the templates of the key, or `Class.method` for a key function. */
export const labelOf = (key: Key, where: string): string => {
  if (typeof key === 'function') return asLabel(where);
  return asLabel([templatesOf(key, where).templates].flat().join(', '));
};

/** Returns the templates of a key, and the modes of list entries. Anything else is passed to the compiler as it is. */
const templatesOf = (key: string | readonly (string | KeyWithMode)[], where: string) => {
  const list = elementsOf(key);
  if (!list) return { templates: key as string, modes: [undefined] };
  const fields = list.map((one) => fieldsOf(one, where));
  const templates = list.map((one, i) => (fields[i] ? fields[i].key : one) as string);
  return { templates, modes: fields.map((one) => one?.mode) };
};
