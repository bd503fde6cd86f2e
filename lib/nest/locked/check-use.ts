import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { isArray } from '../../core/util/describe.js';

type AnyMethod = (this: unknown, ...args: unknown[]) => unknown;

/** Names of the decorators that run a method inside a section. */
export type SectionDecoratorName = '@Locked' | '@Limited';

/** Names of the decorators in messages. */
export type DecoratorName = SectionDecoratorName | '@Leader';

/** What a method of each decorator runs under. */
export const GRANTS: Readonly<Record<DecoratorName, string>> = {
  '@Locked': 'lock',
  '@Limited': 'permit',
  '@Leader': 'leadership',
};

const LEGACY =
  'needs decorators as Nest has them: "experimentalDecorators": true in the compilerOptions of tsconfig.json (with ' +
  'SWC: "legacyDecorator": true in jsc.transform). These are standard decorators.';

/** Second argument of a standard decorator. */
interface StandardContext {
  readonly kind: string;
  readonly name?: PropertyKey;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/**
 * Returns true for the context of a standard decorator. The value may be options instead, or a Proxy that throws when
 * it is read.
 */
const isStandardContext = (value: unknown): value is StandardContext => {
  if (!isObject(value)) return false;
  try {
    return typeof (value as { kind?: unknown }).kind === 'string' && 'addInitializer' in value;
  } catch {
    return false;
  }
};

const isClass = (value: unknown): value is { readonly name: string } =>
  typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));

const ownerName = (target: object): string => {
  const { name } = typeof target === 'function' ? target : target.constructor;
  return name || '(anonymous class)';
};

/** Returns `Class.method`, for messages. */
export const whereOf = (target: object, property: PropertyKey): string =>
  `${ownerName(target)}.${String(property)}`;

/**
 * Rejects a decorator without parentheses. The compiler then calls it with the class and the method instead of a key
 * and options, and the method would stay without a lock.
 *
 * @throws LockConfigurationError that shows how to write the decorator
 */
export const refuseBareUse = (decorator: DecoratorName, args: readonly unknown[]): void => {
  const [first, second] = args;
  if (isStandardContext(second)) {
    throw new LockConfigurationError(
      `${describeStandard(first, second)}: ${decorator} ${LEGACY} And write it with parentheses and a key: ${decorator}('nightly-report').`,
    );
  }
  if (isClass(first) && args.length === 1) throw new LockConfigurationError(onClass(decorator, first));
  const isTarget = (isObject(first) && !isArray(first)) || (typeof first === 'function' && args.length > 2);
  if (isTarget && (typeof second === 'string' || typeof second === 'symbol')) {
    throw new LockConfigurationError(
      `${whereOf(first, second)}: write ${decorator}('nightly-report'), with parentheses and a key. Without them the method ` +
        `would run without a ${GRANTS[decorator]}.`,
    );
  }
};

/**
 * Returns the method to wrap.
 *
 * @throws LockConfigurationError when the decorator is not on an instance method
 */
export const checkTarget = (
  decorator: DecoratorName,
  target: object,
  property: unknown,
  descriptor: unknown,
): AnyMethod => {
  if (isStandardContext(property)) {
    throw new LockConfigurationError(`${describeStandard(target, property)}: ${decorator} ${LEGACY}`);
  }
  if (property === undefined) {
    throw new LockConfigurationError(onClass(decorator, target as { readonly name: string }));
  }
  const where = whereOf(target, property as PropertyKey);
  if (typeof descriptor === 'number') {
    throw new LockConfigurationError(`${where}: only methods can be ${decorator}, not their parameters.`);
  }
  if (typeof target === 'function') {
    throw new LockConfigurationError(
      `${where}: a static method cannot be ${decorator}, there is no instance to inject into.`,
    );
  }
  const original = (descriptor as PropertyDescriptor | undefined)?.value as unknown;
  if (typeof original !== 'function') {
    throw new LockConfigurationError(
      `${where}: only methods can be ${decorator}, not accessors or properties.`,
    );
  }
  return original as AnyMethod;
};

const onClass = (decorator: DecoratorName, { name }: { readonly name: string }): string =>
  `${name || '(anonymous class)'}: a class cannot be ${decorator}. Put ${decorator} on each of its methods that shall ` +
  `run inside a ${GRANTS[decorator]}.`;

const describeStandard = (value: unknown, { kind, name }: StandardContext): string =>
  `${String(name ?? (value as { name?: string } | undefined)?.name ?? '(anonymous)')} (a ${kind})`;
