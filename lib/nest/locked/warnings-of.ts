import { sourceOf } from '../../key/parameter-names.js';
import { GRANTS } from './check-use.js';
import { lockedMethodsOf, ownLockedMethods, prototypesOf, type LockedMethod } from './lock-binding.js';

type AnyFunction = (...args: never[]) => unknown;

/**
 * Returns warnings about the locked methods of an instance. It finds a wrapper above the decorator (perhaps a
 * transaction), two `@Locked` on one method, and a subclass that overrides a locked method without the decorator.
 *
 * @param service name of the module; only its methods are checked
 * @param checked things that were checked before; each is reported once
 */
export const warningsOf = (
  instance: object,
  service: string | undefined,
  checked: Set<object>,
): readonly string[] => {
  const isNew = (thing: object): boolean => {
    const isKnown = checked.has(thing);
    checked.add(thing);
    return !isKnown;
  };
  return lockedMethodsOf(instance)
    .filter(({ method }) => method.service === service)
    .flatMap(({ prototype, method }) => {
      const override = overrideWithoutLock(instance, prototype, method.name);
      return [
        isNew(method) ? wrappedAbove(prototype, method) : undefined,
        override && isNew(override.method) ? unlockedOverride(override.owner, prototype, method) : undefined,
      ].filter((warning) => warning !== undefined);
    });
};

const nameOf = (prototype: object, { name }: LockedMethod): string =>
  `${prototype.constructor.name}.${String(name)}`;

const ownFunction = (prototype: object, name: PropertyKey): AnyFunction | undefined => {
  const value = Object.getOwnPropertyDescriptor(prototype, name)?.value as unknown;
  return typeof value === 'function' ? (value as AnyFunction) : undefined;
};

const wrappedAbove = (prototype: object, method: LockedMethod): string | undefined => {
  if (ownFunction(prototype, method.name) === method.wrapper) return undefined;
  const above = ownLockedMethods(prototype)?.find(({ original }) => original === method.wrapper);
  if (!above) {
    return (
      `${nameOf(prototype, method)}: a decorator above ${method.decorator} wraps the method. If it is a transaction, the ` +
      `${GRANTS[method.decorator]} is released before the commit: put ${method.decorator} on top.`
    );
  }
  // Two decorators are the only way to hold locks of two modules.
  if (above.service !== method.service) return undefined;
  // A permit takes no list of keys. It may be combined with a lock, or with a permit of another key.
  if (above.decorator === '@Limited' || method.decorator === '@Limited') return undefined;
  return (
    `${nameOf(prototype, method)} has two @Locked. They are taken one after the other, so callers that take them in ` +
    `another order can wait for each other. Write one with both keys, all or none: @Locked(['a:<<x>>', 'b:<<y>>']).`
  );
};

/** Returns the nearest override of a locked method that runs without the lock. */
const overrideWithoutLock = (
  instance: object,
  locked: object,
  name: PropertyKey,
): { owner: object; method: AnyFunction } | undefined => {
  const below = prototypesOf(instance);
  for (const owner of below.slice(0, below.indexOf(locked))) {
    const method = ownFunction(owner, name);
    if (!method) continue;
    const isLocked = ownLockedMethods(owner)?.some((own) => own.name === name) ?? false;
    // An override that calls `super` leads to the next class, which is checked in the next round.
    if (isLocked) return undefined;
    if (!callsSuper(owner, method, name)) return { owner, method };
  }
  return undefined;
};

const unlockedOverride = (owner: object, locked: object, method: LockedMethod): string =>
  `${nameOf(owner, method)} overrides ${nameOf(locked, method)}, which is ${method.decorator}, and runs without ` +
  `a ${GRANTS[method.decorator]}. Put ${method.decorator} on it, too, or let it call super.${String(method.name)}().`;

/**
 * Returns true when the text of a method calls the inherited one, as written or as lowered by a compiler
 * (`_super.prototype.pay`, `_superPropGet(Child, "pay", …)`). The text of a wrapped method is in its class.
 */
const callsSuper = (owner: object, method: AnyFunction, name: PropertyKey): boolean => {
  const classText = sourceOf(owner.constructor as AnyFunction);
  const ownText = sourceOf(method);
  const isOriginal = classText.includes(ownText) || !/^class\b/.test(classText);
  const text = isOriginal ? ownText : classText;
  if (/\bsuper\s*(?:\.prototype\s*)?\[/.test(text)) return true;
  const quoted = String(name).replace(/[^\w]/g, '\\$&');
  return new RegExp(
    `super\\s*(?:\\.prototype\\s*)?\\??\\.\\s*${quoted}(?![\\w$])|(?:superPropGet|_get)\\d*\\([^;]*["']${quoted}["']`,
  ).test(text);
};
