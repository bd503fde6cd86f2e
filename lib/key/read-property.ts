/** Result of {@link readProperty} for a property that is absent, or must not be read. */
export const MISSING: unique symbol = Symbol('missing');

/**
 * Returns an own property, or the value of an accessor that a class on the prototype chain declares: fields, Mongoose
 * documents, getters of a DTO. It never reads properties of JavaScript itself: `dto.constructor` or `dto.__proto__.x`
 * would be the same for every caller, and so would the lock. It does not read inherited methods and values either.
 *
 * Throws the error of an accessor or a Proxy.
 */
export function readProperty(holder: object, name: string): unknown {
  if (Object.hasOwn(holder, name)) return (holder as Record<string, unknown>)[name];
  let prototype: unknown = Object.getPrototypeOf(holder);
  while (isObject(prototype) && !isBuiltIn(prototype)) {
    const property = Object.getOwnPropertyDescriptor(prototype, name);
    if (property) return property.get ? Reflect.get(prototype, name, holder) : MISSING;
    prototype = Object.getPrototypeOf(prototype);
  }
  return MISSING;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

// Only a memo of a fact about the prototype: it cannot differ between two apps in one process.
const builtIns = new WeakMap<object, boolean>();

function isBuiltIn(prototype: object): boolean {
  const known = builtIns.get(prototype);
  if (known !== undefined) return known;
  const result = Object.getPrototypeOf(prototype) === null || hasNativeConstructor(prototype);
  builtIns.set(prototype, result);
  return result;
}

// By its constructor and not by identity: under Jest, in a vm context, there are several Object and Array. A bound or
// Proxy-wrapped class has no name in its source text, so it still counts as a class.
function hasNativeConstructor(prototype: object): boolean {
  const constructor: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  if (typeof constructor !== 'function') return false;
  return /^function \w+\(\)\s*\{\s*\[native code\]\s*\}$/.test(Function.prototype.toString.call(constructor));
}
