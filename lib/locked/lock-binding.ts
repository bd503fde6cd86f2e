import { Inject } from '@nestjs/common';
import { LockConfigurationError } from '../core/lock.errors.js';
import type { LockService } from '../lock.service.js';
import { getLockServiceToken } from '../redis-lock.tokens.js';

/**
 * How an instance gets its lock service: Nest injects it through an accessor on the prototype. What is set is kept
 * beside the instance, so that frozen instances work and the service is in no one's way when they are printed.
 */
const services = new WeakMap<object, Map<PropertyKey, LockService>>();

/** Where a class keeps what is locked in it; shared by both builds. */
const METHODS = Symbol.for('nest-redis-lock:methods');

/** A locked method, as the start-up check needs it. */
export interface LockedMethod {
  readonly name: PropertyKey;
  readonly service: string | undefined;
  readonly wrapper: unknown;
}

const accessorOf = (service: string | undefined): symbol =>
  Symbol.for(`nest-redis-lock:service:${service ?? ''}`);

/** Notes a locked method, and lets Nest inject the service it needs. */
export const register = (prototype: object, method: LockedMethod): void => {
  const own = Object.getOwnPropertyDescriptor(prototype, METHODS)?.value as LockedMethod[] | undefined;
  if (own) own.push(method);
  else Object.defineProperty(prototype, METHODS, { value: [method] });

  const accessor = accessorOf(method.service);
  if (accessor in prototype) return;
  Object.defineProperty(prototype, accessor, {
    configurable: true,
    get(this: object) {
      return services.get(this)?.get(accessor);
    },
    set(this: object, service: LockService) {
      const bound = services.get(this) ?? new Map<PropertyKey, LockService>();
      services.set(this, bound.set(accessor, service));
    },
  });
  Inject(getLockServiceToken(method.service))(prototype, accessor);
};

const parentOf = (value: object): object | null => Object.getPrototypeOf(value) as object | null;

/** The locked methods of an instance, inherited ones included, each with the prototype that has it. */
export const lockedMethodsOf = (instance: object): { prototype: object; method: LockedMethod }[] => {
  const found: { prototype: object; method: LockedMethod }[] = [];
  for (let prototype = parentOf(instance); prototype; prototype = parentOf(prototype)) {
    const own = Object.getOwnPropertyDescriptor(prototype, METHODS)?.value as LockedMethod[] | undefined;
    for (const method of own ?? []) found.push({ prototype, method });
  }
  return found;
};

export const serviceOf = (instance: object, name: string | undefined): LockService | undefined =>
  (instance as Record<symbol, LockService | undefined>)[accessorOf(name)];

export const bindService = (instance: object, name: string | undefined, service: LockService): void => {
  (instance as Record<symbol, LockService>)[accessorOf(name)] = service;
};

/** The service of an instance; without one the method must not run. */
export const requireService = (instance: unknown, name: string | undefined, where: string): LockService => {
  const service = typeof instance === 'object' && instance !== null ? serviceOf(instance, name) : undefined;
  if (service && typeof service.withLock === 'function') return service;
  const module =
    name === undefined ? 'RedisLockModule.forRoot()' : `RedisLockModule.forRoot({ name: '${name}' })`;
  throw new LockConfigurationError(
    service
      ? `${where} is @Locked, but what was injected as its LockService is a mock without withLock. ` +
          `In tests import RedisLockTestingModule from 'nest-redis-lock/testing'.`
      : `${where} is @Locked, but this object has no LockService, so it does not run. Import ${module} and let Nest ` +
          `make the object. In tests use bindLocks(instance, locks) of 'nest-redis-lock/testing'. A request-scoped ` +
          `factory has to bind what it makes, too.`,
  );
};
