import 'reflect-metadata';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { GRANTS, type DecoratorName } from './check-use.js';
import type { AnyMethod } from './locked-method.js';
import { isObservable } from './streams.js';

/**
 * How a method returns its result, which decides how long the lock is held. `iterable`: the method is not async, and is
 * not declared to return a promise. `unknown`: the compiler emitted no return type, or `Promise`, which SWC also emits for
 * an async generator that it lowers.
 */
export type ResultStyle = 'promise' | 'observable' | 'generator' | 'iterable' | 'unknown';

/** Return types that certainly are no promise. */
const SYNCHRONOUS: readonly unknown[] = [String, Number, Boolean, BigInt, Symbol, Array, Function, Date];

const tagOf = (method: AnyMethod): string => Object.prototype.toString.call(method);

export const isGenerator = (method: AnyMethod): boolean =>
  tagOf(method) === '[object AsyncGeneratorFunction]';

/** Returns the style of a method, from its function and its declared type; throws for a synchronous one. */
export const resultStyle = (
  decorator: DecoratorName,
  target: object,
  property: PropertyKey,
  original: AnyMethod,
  where: string,
): ResultStyle => {
  const kind = tagOf(original);
  if (isGenerator(original)) return 'generator';
  if (kind === '[object AsyncFunction]') return 'promise';
  const declared = Reflect.getMetadata('design:returntype', target, property as string) as
    { name?: string; prototype?: unknown } | undefined;
  // By shape: a minified bundle renames the class.
  if (isObservable(declared?.prototype)) return 'observable';
  if (SYNCHRONOUS.includes(declared) || kind === '[object GeneratorFunction]') {
    throw new LockConfigurationError(
      `${where}: a ${decorator} method must return a Promise, an Observable or an AsyncIterable, because taking a ` +
        `${GRANTS[decorator]} takes time. Make it async.`,
    );
  }
  return declared && declared.name !== 'Promise' ? 'iterable' : 'unknown';
};
