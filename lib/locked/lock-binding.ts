import { Inject } from '@nestjs/common';
import { LockConfigurationError } from '../core/errors/lock.errors.js';
import type { Placeholder } from '../key/template-syntax.js';
import type { LockService } from '../lock.service.js';
import { getLockServiceToken } from '../redis-lock.tokens.js';
import type { DecoratorName } from './check-use.js';

/**
 * How an instance gets its lock service: Nest injects it through an accessor on the prototype, which keeps it as a
 * property of the instance itself. A Proxy around the instance passes that on in both directions, also one without a
 * `set` trap whose `get` trap reads from its target; an object that inherits from the instance finds it as well. The
 * property is not enumerable, so the service is in no one's way when instances are printed, compared or copied.
 */
const propertyOf = (service: string | undefined): symbol =>
  Symbol.for(`nest-redis-lock:bound-service:${service ?? ''}`);

/** The services of what takes no properties: frozen and sealed objects. */
const beside = new WeakMap<object, Map<symbol, LockService>>();

const keepBeside = (instance: object, property: symbol, service: LockService): void => {
  beside.set(instance, (beside.get(instance) ?? new Map<symbol, LockService>()).set(property, service));
};

/** Set while the getter is asked only to learn which object a Proxy reads from. */
let learning: LockService | undefined;

/** Where a class keeps what is locked in it; shared by both builds. */
const METHODS = Symbol.for('nest-redis-lock:methods');

type Method = (...args: never[]) => unknown;

/** A locked method, as the start-up check needs it. */
export interface LockedMethod {
  readonly decorator: DecoratorName;
  readonly name: PropertyKey;
  readonly service: string | undefined;
  /** Placeholders of its key that the module has to give a value: `<<$name>>`. */
  readonly contextPlaceholders: readonly Placeholder[];
  /** What the decorator found: the method itself, or what a decorator below has made of it. */
  readonly original: Method;
  readonly wrapper: Method;
}

const accessorOf = (service: string | undefined): symbol =>
  Symbol.for(`nest-redis-lock:service:${service ?? ''}`);

/** Notes a locked method, and lets Nest inject the service it needs. */
export const register = (prototype: object, method: LockedMethod): void => {
  const own = ownLockedMethods(prototype);
  if (own) own.push(method);
  else Object.defineProperty(prototype, METHODS, { value: [method] });

  const accessor = accessorOf(method.service);
  if (accessor in prototype) return;
  const property = propertyOf(method.service);
  Object.defineProperty(prototype, accessor, {
    configurable: true,
    get(this: object) {
      if (learning) keepBeside(this, property, learning);
      return (this as Record<symbol, LockService | undefined>)[property] ?? beside.get(this)?.get(property);
    },
    set(this: object, service: LockService) {
      if (Reflect.defineProperty(this, property, { value: service, configurable: true })) return;
      keepBeside(this, property, service);
      learning = service;
      try {
        // A Proxy calls the method with itself, or with what it stands for: both have to be known.
        Reflect.get(this, accessor);
      } finally {
        learning = undefined;
      }
    },
  });
  Inject(getLockServiceToken(method.service))(prototype, accessor);
};

const parentOf = (value: object): object | null => Object.getPrototypeOf(value) as object | null;

/** What is locked in one class, without what it inherits. From below: decorators are applied in that order. */
export const ownLockedMethods = (prototype: object): LockedMethod[] | undefined =>
  Object.getOwnPropertyDescriptor(prototype, METHODS)?.value as LockedMethod[] | undefined;

/** The prototypes of an instance, its own class first. */
export const prototypesOf = (instance: object): object[] => {
  const prototypes: object[] = [];
  for (let prototype = parentOf(instance); prototype; prototype = parentOf(prototype)) {
    prototypes.push(prototype);
  }
  return prototypes;
};

/** The locked methods of an instance, inherited ones included, each with the prototype that has it. */
export const lockedMethodsOf = (instance: object): { prototype: object; method: LockedMethod }[] =>
  prototypesOf(instance).flatMap((prototype) =>
    (ownLockedMethods(prototype) ?? []).map((method) => ({ prototype, method })),
  );

export const serviceOf = (instance: object, name: string | undefined): LockService | undefined =>
  (instance as Record<symbol, LockService | undefined>)[accessorOf(name)];

export const bindService = (instance: object, name: string | undefined, service: LockService): void => {
  (instance as Record<symbol, LockService>)[accessorOf(name)] = service;
};

/** What each decorator asks of its service. */
const NEEDS = { '@Locked': 'withLock', '@Limited': 'permits' } as const satisfies Record<
  DecoratorName,
  keyof LockService
>;

/** The service of an instance; without one the method must not run. */
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
