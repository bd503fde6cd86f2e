import { Inject } from '@nestjs/common';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { Placeholder } from '../../key/template-syntax.js';
import type { LockService } from '../service/lock.service.js';
import { getLockServiceToken } from '../module/redis-lock.tokens.js';
import type { DecoratorName } from './check-use.js';

/**
 * Returns the name of the property in which an instance keeps its lock service. Nest injects the service through an
 * accessor on the prototype, which writes this property. A Proxy around the instance passes it on in both directions,
 * even if it has no `set` trap and its `get` trap reads from its target. Objects that inherit from the instance find
 * it, too. It is not enumerable, so it does not appear when instances are printed, compared or copied.
 */
const propertyOf = (service: string | undefined): symbol =>
  Symbol.for(`nest-redis-lock:bound-service:${service ?? ''}`);

/** Services of frozen and sealed objects, which take no properties. */
const beside = new WeakMap<object, Map<symbol, LockService>>();

const keepBeside = (instance: object, property: symbol, service: LockService): void => {
  beside.set(instance, (beside.get(instance) ?? new Map<symbol, LockService>()).set(property, service));
};

/** Set while the getter is called only to learn which object a Proxy reads from. */
let learning: LockService | undefined;

/** Property in which a class keeps its locked methods; shared by both builds. */
const METHODS = Symbol.for('nest-redis-lock:methods');

type Method = (...args: never[]) => unknown;

/** A locked method, for the check when the app starts. */
export interface LockedMethod {
  readonly decorator: DecoratorName;
  readonly name: PropertyKey;
  readonly service: string | undefined;
  /** Placeholders of its key that need a value from the module: `<<$name>>`. */
  readonly contextPlaceholders: readonly Placeholder[];
  /** Throws `LockConfigurationError` for options that the service or its store rejects. */
  readonly checkOptions: (locks: LockService) => void;
  /** Function that the decorator found: the method itself, or the wrapper of a decorator below. */
  readonly original: Method;
  readonly wrapper: Method;
}

/** Nest quotes its text when the service cannot be injected. */
const accessorOf = (service: string | undefined): symbol => Symbol.for(getLockServiceToken(service).name);

/** Records a locked method, and lets Nest inject the service it needs. */
export const register = (prototype: object, method: LockedMethod): void => {
  const own = ownLockedMethods(prototype);
  if (own) own.push(method);
  else Object.defineProperty(prototype, METHODS, { value: [method] });
  injectService(prototype, method.service);
};

/** Lets Nest inject a lock service into the instances of a class. Without its module, the app does not start. */
export const injectService = (prototype: object, service: string | undefined): void => {
  const accessor = accessorOf(service);
  if (accessor in prototype) return;
  const property = propertyOf(service);
  Object.defineProperty(prototype, accessor, {
    configurable: true,
    get(this: object) {
      if (learning) keepBeside(this, property, learning);
      return (this as Record<symbol, LockService | undefined>)[property] ?? beside.get(this)?.get(property);
    },
    set(this: object, bound: LockService) {
      if (Reflect.defineProperty(this, property, { value: bound, configurable: true })) return;
      keepBeside(this, property, bound);
      learning = bound;
      try {
        // A Proxy calls the method with itself or with its target as `this`, so both must find the service.
        Reflect.get(this, accessor);
      } finally {
        learning = undefined;
      }
    },
  });
  Inject(getLockServiceToken(service))(prototype, accessor);
};

const parentOf = (value: object): object | null => Object.getPrototypeOf(value) as object | null;

/**
 * Returns the locked methods of one class, without inherited ones, in the order in which decorators are applied: from
 * below.
 */
export const ownLockedMethods = (prototype: object): LockedMethod[] | undefined =>
  Object.getOwnPropertyDescriptor(prototype, METHODS)?.value as LockedMethod[] | undefined;

/** Returns the prototypes of an instance, its own class first. */
export const prototypesOf = (instance: object): object[] => {
  const prototypes: object[] = [];
  for (let prototype = parentOf(instance); prototype; prototype = parentOf(prototype)) {
    prototypes.push(prototype);
  }
  return prototypes;
};

/** Returns the locked methods of an instance, including inherited ones, each with its prototype. */
export const lockedMethodsOf = (instance: object): { prototype: object; method: LockedMethod }[] =>
  prototypesOf(instance).flatMap((prototype) =>
    (ownLockedMethods(prototype) ?? []).map((method) => ({ prototype, method })),
  );

export const serviceOf = (instance: object, name: string | undefined): LockService | undefined =>
  (instance as Record<symbol, LockService | undefined>)[accessorOf(name)];

export const bindService = (instance: object, name: string | undefined, service: LockService): void => {
  (instance as Record<symbol, LockService>)[accessorOf(name)] = service;
};

/** Method of the service that each decorator calls. */
const NEEDS = { '@Locked': 'withLock', '@Limited': 'permits', '@Leader': 'lead' } as const satisfies Record<
  DecoratorName,
  keyof LockService
>;

/**
 * Returns the service of an instance.
 *
 * @throws LockConfigurationError without a service: the method must not run without its lock
 */
export const requireService = (
  decorator: DecoratorName,
  instance: unknown,
  name: string | undefined,
  where: string,
): LockService => {
  const isObject = typeof instance === 'object' && instance !== null;
  const service = isObject ? serviceOf(instance, name) : undefined;
  const needed = NEEDS[decorator];
  if (service && typeof service[needed] === 'function') return service;
  throw new LockConfigurationError(
    service
      ? `${where} is ${decorator}, but what was injected as its LockService is a mock without ${needed}. ` +
          `In tests import RedisLockTestingModule from 'nest-redis-lock/testing'.`
      : `${where} is ${decorator}, but ${isObject ? noService(name) : noObject(where)}`,
  );
};

const noService = (name: string | undefined): string => {
  const module =
    name === undefined ? 'RedisLockModule.forRoot()' : `RedisLockModule.forRoot({ name: '${name}' })`;
  return (
    `this object has no LockService, so it does not run. ${module} has to be imported, and gives one to what Nest ` +
    `makes from a class and, when the app is initialised, to what useFactory and useValue provide (alone or in an ` +
    `array). A constructor, a field initializer or a factory calls the method too early, since Nest injects the ` +
    `LockService afterwards: call it in onModuleInit (of what a factory provides, in onApplicationBootstrap). The module ` +
    `cannot see what was made with new, by a request-scoped factory or in a lazily loaded module, what is inside of ` +
    `another object, and what a Proxy hides: inject ModuleRef and make it with moduleRef.create(TheClass). ` +
    `In tests use bindLocks(instance, locks) of 'nest-redis-lock/testing'.`
  );
};

const noObject = (where: string): string =>
  `it was called without its object (this), so it does not run. Call it on the object, or pass it on as ` +
  `(...args) => instance.${where.slice(where.indexOf('.') + 1)}(...args).`;
