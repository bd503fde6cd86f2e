import 'reflect-metadata';
import { defaultCall, DEFAULT_SETTINGS, resolveCall, SECTION_NAMES } from '../core/settings/lock-settings.js';
import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { reading, refuse } from '../core/settings/option-checks.js';
import { checkNames, type Names } from '../core/settings/option-names.js';
import { isArray } from '../core/errors/describe.js';
import { checkKeys } from '../key/key-check.js';
import { compileKey } from '../key/key-template.js';
import { parameterNames } from '../key/parameter-names.js';
import { requestContext } from '../transport/request-context.js';
import { checkTarget, refuseBareUse, whereOf } from './check-use.js';
import { register, requireService } from './lock-binding.js';
import { wrapMethod, type LockedMethodSpec, type ResultStyle } from './locked-method.js';
import { LOCKED_METADATA, type LockedMetadata } from './locked.metadata.js';
import type { LockedOptions } from './locked.options.js';
import type { Locked as LockedSignature } from './locked.types.js';

type KeyFunction = (...args: unknown[]) => unknown;
type Key = string | readonly string[] | KeyFunction;
type AnyMethod = (this: unknown, ...args: unknown[]) => unknown;

const isOptions = (value: unknown): value is LockedOptions =>
  typeof value === 'object' && value !== null && !isArray(value);

const decorate = (...args: readonly unknown[]) => {
  refuseBareUse(args);
  const [key, given, ...rest] = isOptions(args[0])
    ? [undefined, ...args]
    : ([args[0], args[1] === undefined ? {} : args[1], ...args.slice(2)] as const);

  return (target: object, property: PropertyKey, descriptor: TypedPropertyDescriptor<AnyMethod>): void => {
    const original = checkTarget(target, property, descriptor);
    const owner = target.constructor;
    const where = whereOf(target, property);
    if (rest.some((more) => more !== undefined)) {
      throw new LockConfigurationError(
        `${where}: @Locked takes a key and its options, and nothing after these.`,
      );
    }
    const options = checkedOptions(given as LockedOptions, where);
    const style = resultStyle(target, property, original, where);
    const spec: LockedMethodSpec = {
      original,
      where,
      options,
      keysOf: keysOf(key as Key | undefined, owner, property as string | symbol, original, where),
      serviceOf: (instance) => requireService(instance, options.service, where),
      callSignal: () => requestContext.getStore()?.signal,
      streamBegins: () => requestContext.getStore()?.streamBegins?.(),
    };
    const wrapper = likeOriginal(wrapMethod(spec, style), original);
    Reflect.defineMetadata(LOCKED_METADATA, metadataOf(key as Key | undefined, options, where), wrapper);
    descriptor.value = wrapper;
    register(target, { name: property, service: options.service, original, wrapper });
  };
};

/**
 * Runs a method of any provider or controller inside a lock: the key is rendered from the arguments, the lock is
 * taken, kept while the method runs, and released whatever happens. A locked method never runs without its lock.
 *
 * Keys: `'order:<<userId>>'` by parameter name, `'cart:<<cart.owner.id>>:<<1>>'` by path or index, several for all
 * or none, a function (used verbatim), `<<$request.user.id>>` on HTTP, `<<$name>>` from the module's `context`, or
 * none for `ClassName.methodName`. Mistakes in a key are `LockKeyError` when the class is loaded.
 *
 * At a call it throws `LockNotAcquiredError` (taken for longer than `waitMs`), `LockStoreError` (the store failed),
 * `LockKeyError` (an argument cannot be part of a key), `LockAbortedError` (client gone, app stopping). The
 * method's own errors pass untouched.
 *
 * @example
 * @Locked('order:<<userId>>', { waitMs: 2_000 })
 * async placeOrder(userId: string, items: Item[]): Promise<Order> { … }
 */
export const Locked = decorate as LockedSignature;

const LOCKED_NAMES: Names<LockedOptions> = { ...SECTION_NAMES, onBusy: true, service: true };

/** A frozen copy: what was checked here is what every call gets. */
const checkedOptions = (given: LockedOptions, where: string): LockedOptions => {
  try {
    return reading('options', () => {
      if (!isOptions(given)) refuse('options', 'an object such as { waitMs: 2_000 }', given);
      const options = Object.freeze({ ...given });
      checkNames(options, '@Locked', LOCKED_NAMES);
      const { onBusy, service, ...call } = options;
      resolveCall(call, defaultCall(DEFAULT_SETTINGS));
      if (onBusy !== undefined && onBusy !== 'skip' && typeof onBusy !== 'function') {
        refuse('onBusy', "'skip' or a function", onBusy);
      }
      if (service !== undefined && typeof service !== 'string') {
        refuse('service', 'the name of a module', service);
      }
      if (onBusy === 'skip' && call.waitMs !== undefined && call.waitMs !== 0) {
        throw new LockConfigurationError(
          `onBusy: 'skip' does not wait, so waitMs: ${call.waitMs} cannot go with it. Leave out waitMs; to wait and then ` +
            `give up without an error, use a function: onBusy: () => undefined.`,
        );
      }
      return options;
    });
  } catch (error) {
    throw new LockConfigurationError(`${where}: ${(error as Error).message}`, { cause: error });
  }
};

const metadataOf = (key: Key | undefined, options: LockedOptions, where: string): LockedMetadata =>
  Object.freeze({ key: isArray(key) ? Object.freeze([...key]) : (key ?? where), options });

/** Return types that tell for certain that a method does not give a promise. */
const SYNCHRONOUS: readonly unknown[] = [String, Number, Boolean, BigInt, Symbol, Array, Function, Date];

const resultStyle = (
  target: object,
  property: PropertyKey,
  original: AnyMethod,
  where: string,
): ResultStyle => {
  const kind = Object.prototype.toString.call(original);
  if (kind === '[object AsyncGeneratorFunction]') return 'generator';
  if (kind === '[object AsyncFunction]') return 'promise';
  const declared = Reflect.getMetadata('design:returntype', target, property as string) as
    { name?: string } | undefined;
  if (declared?.name === 'Observable') return 'observable';
  if (SYNCHRONOUS.includes(declared) || kind === '[object GeneratorFunction]') {
    throw new LockConfigurationError(
      `${where}: a @Locked method must return a Promise, an Observable or an AsyncIterable, because taking a lock ` +
        `takes time. Make it async.`,
    );
  }
  if (declared?.name === 'Promise') return 'promise';
  return declared ? 'iterable' : 'unknown';
};

const keysOf = (
  key: Key | undefined,
  owner: object,
  property: string | symbol,
  original: AnyMethod,
  where: string,
): LockedMethodSpec['keysOf'] => {
  if (typeof key === 'function') return (_locks, args) => checkKeys(key(...args), where);
  if (key === undefined) {
    if ((owner as { name: string }).name === '') {
      throw new LockConfigurationError(
        `${where}: without a key the class needs a name. Name the class or give a key.`,
      );
    }
    return () => [where];
  }
  const template = compileKey(key, {
    className: (owner as { name: string }).name,
    methodName: property,
    parameters: parameterNames(owner, property, original),
  });
  return (locks, args) =>
    template.render(args, (name) =>
      name === 'request' ? requestContext.getStore()?.request : locks.contextValue(name),
    );
};

/** Decorators below have left metadata on the method, and Nest looks at its name and length. */
const likeOriginal = (wrapper: AnyMethod, original: AnyMethod): AnyMethod => {
  for (const name of ['name', 'length'] as const) {
    Object.defineProperty(wrapper, name, { value: original[name], configurable: true });
  }
  for (const metadataKey of Reflect.getOwnMetadataKeys(original)) {
    Reflect.defineMetadata(metadataKey, Reflect.getOwnMetadata(metadataKey, original), wrapper);
  }
  return wrapper;
};
