import 'reflect-metadata';
import { callableInside } from '../../core/nesting/callable-inside.js';
import type { KeyWithMode } from '../../core/settings/acquire-options.js';
import { defaultCall, resolveCall, type LockCall } from '../../core/settings/lock-call.js';
import { DEFAULT_SETTINGS } from '../../core/settings/lock-settings.js';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { named, reading, invalidOption } from '../../core/settings/option-checks.js';
import { checkNames, type Names } from '../../core/settings/option-names.js';
import { isArray } from '../../core/util/describe.js';
import type { LockService } from '../service/lock.service.js';
import { handingOn, requestContext, takeSignal } from '../transport/request-context.js';
import { checkTarget, refuseBareUse, whereOf, type SectionDecoratorName } from './check-use.js';
import { checkKeyGiven, checkModes, keySource, labelOf, type Key } from './key-source.js';
import { register, requireService } from './lock-binding.js';
import { lockedGenerator } from './locked-generator.js';
import { lockedObservable } from './locked-observable.js';
import { lockedIterable, lockedPromise } from './locked-promise.js';
import {
  LIMITED_METADATA,
  LOCKED_METADATA,
  type LimitedMetadata,
  type LockedMetadata,
} from './locked.metadata.js';
import type { LimitedOptions, LockedOptions } from './locked.options.js';
import {
  callOptions,
  streamRefused,
  type AnyMethod,
  type CallLocked,
  type CallOptions,
  type LockedMethodSpec,
  type RunSection,
} from './locked-method.js';
import { isGenerator, resultStyle, type ResultStyle } from './result-style.js';
import { checkVary, varyingOptions } from './varying-options.js';

type AnyOptions = LockedOptions & LimitedOptions;
type AnyMetadata = LockedMetadata | LimitedMetadata;

/** What differs between the two decorators. */
export interface SectionDecorator {
  readonly name: SectionDecoratorName;
  readonly optionNames: Names<LockedOptions> | Names<LimitedOptions>;
  /** Call that takes the same options. */
  readonly method: 'withLock' | '@Limited';
  readonly severalKeys: boolean;
  readonly metadataKey: string;
  readonly run: RunSection;
}

/** A decorator does not know the settings of its module, so it checks against the smallest `watchdogMs`. */
const SMALLEST = { ...DEFAULT_SETTINGS, watchdogMs: DEFAULT_SETTINGS.minWatchdogMs };

const isOptions = (value: unknown): value is AnyOptions =>
  typeof value === 'object' && value !== null && !isArray(value);

/** Creates a decorator. Plain JavaScript may call it with anything, so it checks all its arguments. */
export const sectionDecorator =
  (decorator: SectionDecorator) =>
  (...args: readonly unknown[]) => {
    refuseBareUse(decorator.name, args);
    const [key, given = {}, ...more] = args;

    return (target: object, property: PropertyKey, descriptor: TypedPropertyDescriptor<AnyMethod>): void => {
      const original = checkTarget(decorator.name, target, property, descriptor);
      const owner = target.constructor;
      const where = whereOf(target, property);
      checkKeyGiven(key, decorator.name, where);
      const vary = checkVary(decorator.name, where, more);
      const options = checkedOptions(decorator, given as AnyOptions, where);
      const style = resultStyle(decorator.name, target, property, original, where);
      const streams = style !== 'promise' && style !== 'unknown';
      if (options.oncePerMs !== undefined && streams) throw streamRefused(where);
      const { keysOf, contextPlaceholders, modes } = keySource(
        decorator,
        key,
        owner,
        property as string | symbol,
        original,
        where,
      );
      named(where, () => checkModes(key, callOf(decorator, options), where));
      const fixed = callOptions(options, labelOf(key, where));
      const all = (join: () => object): CallOptions =>
        callOptions(checkedOptions(decorator, named(where, join), where), labelOf(key, where));
      const spec: LockedMethodSpec = {
        decorator: decorator.name,
        run: options.signal === undefined && isDecorated(original) ? handsOn(decorator.run) : decorator.run,
        original,
        where,
        options,
        optionsOf: vary ? varyingOptions(options, fixed, vary, all) : () => fixed,
        keysOf,
        serviceOf: (instance) => requireService(decorator.name, instance, options.service, where),
        callSignal: (self) => takeSignal(self, property),
        streamBegins: () => requestContext.getStore()?.streamBegins(),
      };
      const checkOptions = (locks: LockService): void =>
        named(where, () => locks.checkSection(decorator.method, fixed, modes));
      const run = callLocked(spec, style);
      const wrapper = likeOriginal(function (this: unknown, ...args) {
        return run(this, args, undefined);
      }, original);
      callableInside(wrapper, { decorator: decorator.name, name: property, run });
      const metadata = metadataOf(key, options);
      refuseSameKey(original, metadata, where);
      Reflect.defineMetadata(decorator.metadataKey, metadata, wrapper);
      descriptor.value = wrapper;
      register(target, {
        decorator: decorator.name,
        name: property,
        service: options.service,
        contextPlaceholders,
        checkOptions,
        original,
        wrapper,
      });
    };
  };

/** Returns how a method is called, so that it runs inside its lock, or not at all. */
const callLocked = (spec: LockedMethodSpec, style: ResultStyle): CallLocked => {
  if (style === 'observable') return lockedObservable(spec);
  if (style === 'generator') return lockedGenerator(spec);
  return style === 'promise' ? lockedPromise(spec) : lockedIterable(spec, style === 'iterable');
};

const isDecorated = (original: AnyMethod): boolean =>
  [LOCKED_METADATA, LIMITED_METADATA].some((key) => Reflect.hasOwnMetadata(key, original));

/** Lets the client's disconnect end the wait of the decorator below, too. */
const handsOn =
  (run: RunSection): RunSection =>
  (locks, keys, options, section) =>
    run(locks, keys, options, (lease) => handingOn(options.signal, () => section(lease)));

const callOf = (
  { method }: SectionDecorator,
  { onBusy: _onBusy, service: _service, ...options }: AnyOptions,
): LockCall => resolveCall(options, defaultCall(SMALLEST), method, SMALLEST);

/** Returns a frozen copy: every call gets the options that were checked here. */
const checkedOptions = (decorator: SectionDecorator, given: AnyOptions, where: string): AnyOptions =>
  named(where, () =>
    reading('options', () => {
      if (!isOptions(given)) invalidOption('options', 'an object such as { waitMs: 2_000 }', given);
      const options = Object.freeze({ ...given });
      checkNames(options, decorator.name, decorator.optionNames);
      const { onBusy, service, ...call } = options;
      callOf(decorator, options);
      if (onBusy !== undefined && onBusy !== 'skip' && typeof onBusy !== 'function') {
        invalidOption('onBusy', "'skip' or a function", onBusy);
      }
      if (service !== undefined && typeof service !== 'string') {
        invalidOption('service', 'the name of a module', service);
      }
      if (typeof onBusy === 'function' && call.oncePerMs !== undefined) {
        invalidOption('onBusy', "'skip' or left out with oncePerMs", onBusy);
      }
      if (onBusy === 'skip' && call.waitMs !== undefined && call.waitMs !== 0) {
        throw new LockConfigurationError(
          `onBusy: 'skip' does not wait, so waitMs: ${call.waitMs} cannot go with it. Leave out waitMs; to wait and then ` +
            `give up without an error, use a function: onBusy: () => undefined.`,
        );
      }
      return options;
    }),
  );

const metadataOf = (key: Key, options: AnyOptions): AnyMetadata =>
  Object.freeze({ key: isArray(key) ? Object.freeze(key.map(frozen)) : key, options });

const frozen = (key: string | KeyWithMode): string | KeyWithMode =>
  typeof key === 'object' ? Object.freeze({ ...key }) : key;

/**
 * Rejects two decorators with the same key on one method. A method may have both, but one name cannot be a lock and a
 * permit.
 */
const refuseSameKey = (original: AnyMethod, outer: AnyMetadata, where: string): void => {
  for (const metadataKey of [LOCKED_METADATA, LIMITED_METADATA]) {
    const inner = Reflect.getOwnMetadata(metadataKey, original) as AnyMetadata | undefined;
    if (inner?.key !== outer.key || inner.options.service !== outer.options.service) continue;
    throw new LockConfigurationError(
      `${where} has two decorators with the same key. What is held as a lock cannot be held as a permit, and a second ` +
        `lock or permit of one key is never meant: leave one out, or give it another key.`,
    );
  }
};

/**
 * Copies the name, the length and the metadata of the original: Nest reads the first two, and decorators below have set
 * metadata on it. A decorator above recognizes an async generator function by its prototype.
 */
const likeOriginal = (wrapper: AnyMethod, original: AnyMethod): AnyMethod => {
  for (const name of ['name', 'length'] as const) {
    Object.defineProperty(wrapper, name, { value: original[name], configurable: true });
  }
  if (isGenerator(original)) Object.setPrototypeOf(wrapper, Object.getPrototypeOf(original) as object);
  for (const metadataKey of Reflect.getOwnMetadataKeys(original)) {
    Reflect.defineMetadata(metadataKey, Reflect.getOwnMetadata(metadataKey, original), wrapper);
  }
  return wrapper;
};
