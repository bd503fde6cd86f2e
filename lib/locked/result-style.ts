import 'reflect-metadata';
import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { GRANTS, type DecoratorName } from './check-use.js';
import type { AnyMethod } from './locked-method.js';

/**
 * How a method returns its result, which decides how long the lock is held. `iterable`: the method is not async, and is
 * not declared to return a promise. `unknown`: the compiler did not emit its return type.
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
    { name?: string } | undefined;
  if (declared?.name === 'Observable') return 'observable';
  if (SYNCHRONOUS.includes(declared) || kind === '[object GeneratorFunction]') {
    throw new LockConfigurationError(
      `${where}: a ${decorator} method must return a Promise, an Observable or an AsyncIterable, because taking a ` +
        `${GRANTS[decorator]} takes time. Make it async.`,
    );
  }
  if (declared?.name === 'Promise') return 'promise';
  return declared ? 'iterable' : 'unknown';
};
