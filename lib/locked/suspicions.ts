import { GRANTS } from './check-use.js';
import { lockedMethodsOf, ownLockedMethods, prototypesOf, type LockedMethod } from './lock-binding.js';

type AnyFunction = (...args: never[]) => unknown;

/**
 * What looks wrong about the locked methods of an instance, in sentences for the log: something is wrapped around a
 * method above its decorator (it may be a transaction), a method has two `@Locked`, a subclass overrides one without it.
 *
 * @param service only of methods that are locked by this module
 * @param checked what was looked at before; each thing is told once
 */
export const suspicions = (
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
  // One after the other, in two modules, is the only way to hold locks of both.
  if (above.service !== method.service) return undefined;
  // A permit takes no list of keys, and is meant to stand beside a lock, or beside a permit of another key.
  if (above.decorator === '@Limited' || method.decorator === '@Limited') return undefined;
  return (
    `${nameOf(prototype, method)} has two @Locked. They are taken one after the other, so callers that take them in ` +
    `another order can wait for each other. Write one with both keys, all or none: @Locked(['a:<<x>>', 'b:<<y>>']).`
  );
};

/** The method of the nearest subclass that stands in the place of a locked one and does not lead to it. */
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
    // What calls `super` comes to the next class, where the same is asked again.
    if (isLocked) return undefined;
    if (!callsSuper(owner, method, name)) return { owner, method };
  }
  return undefined;
};

const unlockedOverride = (owner: object, locked: object, method: LockedMethod): string =>
  `${nameOf(owner, method)} overrides ${nameOf(locked, method)}, which is ${method.decorator}, and runs without ` +
  `a ${GRANTS[method.decorator]}. Put ${method.decorator} on it, too, or let it call super.${String(method.name)}().`;

/**
 * Whether the text of a method has a call of the inherited one, as it is written or as a compiler lowers it
 * (`_super.prototype.pay`, `_superPropGet(Child, "pay", …)`). Where a decorator wrapped it, its class has its text.
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

const sourceOf = (target: AnyFunction): string => Function.prototype.toString.call(target);
