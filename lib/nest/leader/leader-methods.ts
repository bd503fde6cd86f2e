import 'reflect-metadata';
import { isArray } from '../../core/util/describe.js';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { LIMITED_METADATA, LOCKED_METADATA, type LockedMetadata } from '../locked/locked.metadata.js';
import type { InstanceWrapper } from '../locked/lock-binder.js';
import { prototypesOf } from '../locked/lock-binding.js';
import type { LockService } from '../service/lock.service.js';
import type { FoundLeader, LeaderMethod } from './leader.options.js';
import type { LeaderFunction } from './candidate.js';

/** Property in which a class keeps its methods with `@Leader`; shared by both builds. */
const METHODS = Symbol.for('nest-redis-lock:leaders');

const ownMethods = (prototype: object): LeaderMethod[] | undefined =>
  Object.getOwnPropertyDescriptor(prototype, METHODS)?.value as LeaderMethod[] | undefined;

export const registerLeader = (prototype: object, method: LeaderMethod): void => {
  const own = ownMethods(prototype);
  if (own) own.push(method);
  else Object.defineProperty(prototype, METHODS, { value: [method] });
};

/** Returns the methods of an object, including inherited ones. The decorator of a subclass replaces that of its base class. */
const methodsOf = (instance: object): readonly LeaderMethod[] => {
  const byName = new Map<PropertyKey, LeaderMethod>();
  for (const prototype of prototypesOf(instance)) {
    for (const method of ownMethods(prototype) ?? []) {
      if (!byName.has(method.name)) byName.set(method.name, method);
    }
  }
  return [...byName.values()];
};

/** Refuses a class of which Nest makes more than one instance, or makes one for each request. */
const checkScope = ({ metatype, isTransient, isDependencyTreeStatic }: Scoped, service?: string): void => {
  if (typeof metatype !== 'function' || typeof metatype.prototype !== 'object' || !metatype.prototype) return;
  if (!isTransient && isDependencyTreeStatic) return;
  const [method] = methodsOf(Object.create(metatype.prototype as object) as object).filter(
    (one) => one.service === service,
  );
  if (!method) return;
  throw new LockConfigurationError(
    `${metatype.name}.${String(method.name)} is @Leader, but ${metatype.name} is ${isTransient ? 'transient' : 'request-scoped, or depends on a provider that is'}. ` +
      'A leader has to be one object for the life of the app: move the method to a singleton provider.',
  );
};

interface Scoped {
  readonly metatype: InstanceWrapper['metatype'];
  readonly isTransient: boolean;
  readonly isDependencyTreeStatic: boolean;
}

/** Refuses a lock of the same key around the method: it would wait for the leadership that it is called under. */
const checkDecorators = ({ name, where, key }: LeaderMethod, instance: object): void => {
  const method = (instance as Record<PropertyKey, unknown>)[name];
  if (typeof method !== 'function') return;
  for (const metadataKey of [LOCKED_METADATA, LIMITED_METADATA]) {
    const given = (Reflect.getMetadata(metadataKey, method) as LockedMetadata | undefined)?.key;
    const keys: readonly unknown[] = isArray(given) ? given : [given];
    if (!keys.some((one) => one === key || (one as { key?: unknown } | undefined)?.key === key)) continue;
    throw new LockConfigurationError(
      `${where}: @Leader and ${metadataKey === LOCKED_METADATA ? '@Locked' : '@Limited'} have the same key. The leader holds that lock ` +
        'while the method runs: leave the other decorator out, or give it another key.',
    );
  }
};

/**
 * Returns the methods with `@Leader` of a module's service, in the objects of the app.
 *
 * @throws LockConfigurationError for a scope other than singleton, for two methods with one key, and for options that the
 * service or its store rejects
 */
export const leadersIn = (
  wrappers: readonly InstanceWrapper[],
  service: string | undefined,
  locks: Pick<LockService, 'leadCall'>,
): readonly FoundLeader[] => {
  const found = new Map<string, FoundLeader>();
  for (const wrapper of wrappers) {
    checkScope(
      {
        metatype: wrapper.metatype,
        isTransient: wrapper.isTransient === true,
        isDependencyTreeStatic: wrapper.isDependencyTreeStatic?.() !== false,
      },
      service,
    );
    for (const instance of isArray(wrapper.instance) ? wrapper.instance : [wrapper.instance]) {
      if (typeof instance !== 'object' || instance === null) continue;
      for (const method of methodsOf(instance)) {
        if (method.service !== service) continue;
        const other = found.get(method.key);
        // Several tokens may stand for one object.
        if (other?.instance === instance && other.name === method.name) continue;
        if (other) throw twoOfOneKey(other, method, instance);
        checkDecorators(method, instance);
        locks.leadCall(method);
        const lead: LeaderFunction = (leadership) =>
          (instance as Record<PropertyKey, LeaderFunction>)[method.name]!.call(instance, leadership);
        found.set(method.key, { ...method, lead, instance });
      }
    }
  }
  return [...found.values()];
};

const twoOfOneKey = (one: FoundLeader, other: LeaderMethod, instance: object): LockConfigurationError => {
  const [first, second] = [one.instance, instance].map(({ constructor }) => constructor.name);
  const names = [`${first}.${String(one.name)}`, `${second}.${String(other.name)}`];
  return new LockConfigurationError(
    names[0] === names[1]
      ? `${names[0]} is @Leader('${other.key}'), and there are two objects of ${first}. Provide the class in one module, ` +
          'and export it.'
      : `${names.join(' and ')} are @Leader('${other.key}'). One process leads a key once: give each method its own key.`,
  );
};
