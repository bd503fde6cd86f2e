import { LockConfigurationError } from '../errors/lock.errors.js';
import { formatValue } from '../util/describe.js';

/** A method that a decorator has wrapped. */
interface WrappedMethod {
  readonly decorator: '@Locked' | '@Limited';
  readonly name: PropertyKey;
  /** Calls the method, with the lease that the call is proven inside of. */
  readonly run: (self: unknown, args: unknown[], inside: never) => unknown;
}

// One for both builds, since both load this file of the core.
const methods = new WeakMap<object, WrappedMethod>();

/** Registers the function that a decorator puts in place of a method. */
export const callableInside = (wrapper: object, method: WrappedMethod): void => {
  methods.set(wrapper, method);
};

const CAUSES =
  'It has no @Locked, another decorator above @Locked wraps it, a subclass overrides it, or it is a spy or a mock. Put ' +
  '@Locked on top, or call the method directly: it is an ordinary caller then.';

/** Returns whether an object has the method under its name, itself or by a class that it inherits from: `super.pay`. */
const has = (self: object, name: PropertyKey, method: unknown): boolean => {
  for (let owner: object | null = self; owner; owner = Reflect.getPrototypeOf(owner)) {
    if (Reflect.get(owner, name, self) === method) return true;
  }
  return false;
};

/**
 * Calls a locked method of `self` as a nested call of a lease. The lease goes to the wrapper as an argument: no other
 * call can have it, whatever the asynchronous context is.
 *
 * @throws LockConfigurationError for a function that is not the wrapper itself, and for an object that has another one
 */
export const callInside = (lease: object, self: unknown, method: unknown, args: unknown[]): unknown => {
  const known = typeof method === 'function' ? methods.get(method) : undefined;
  if (!known) {
    throw new LockConfigurationError(
      `lease.call(this, this.method, …) needs a method with @Locked, and got ${formatValue(method)}. ${CAUSES}`,
    );
  }
  const name = String(known.name);
  if (known.decorator === '@Limited') {
    throw new LockConfigurationError(
      `lease.call cannot call "${name}": it is @Limited, and each call takes a permit of its own. Call it directly.`,
    );
  }
  const isObject = (typeof self === 'object' && self !== null) || typeof self === 'function';
  if (!isObject || !has(self, known.name, method)) {
    throw new LockConfigurationError(
      `lease.call was given the locked method "${name}", but its object has ${isObject ? 'another one' : 'none'} under ` +
        `that name. ${isObject ? CAUSES : `Pass the object first: lease.call(service, service.${name}, …).`}`,
    );
  }
  return known.run(self, args, lease as never);
};
