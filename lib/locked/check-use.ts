import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { isArray } from '../core/errors/describe.js';

type AnyMethod = (this: unknown, ...args: unknown[]) => unknown;

/** The decorators, as their messages name them. */
export type DecoratorName = '@Locked' | '@Limited';

/** What each of them has its method run under. */
export const GRANTS: Readonly<Record<DecoratorName, string>> = { '@Locked': 'lock', '@Limited': 'permit' };

const LEGACY =
  'needs decorators as Nest has them: "experimentalDecorators": true in the compilerOptions of tsconfig.json (with ' +
  'SWC: "legacyDecorator": true in jsc.transform). These are standard decorators.';

/** What a standard decorator is given beside the thing itself. */
interface StandardContext {
  readonly kind: string;
  readonly name?: PropertyKey;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** What stands there may be options, and a Proxy may throw at any look. */
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

/** `Class.method`, for messages. */
export const whereOf = (target: object, property: PropertyKey): string =>
  `${ownerName(target)}.${String(property)}`;

/**
 * Finds a decorator without parentheses: then what should be a key and options is what a decorator gets, and the method
 * would be left as it is, without a lock.
 */
export const refuseBareUse = (decorator: DecoratorName, args: readonly unknown[]): void => {
  const [first, second] = args;
  if (isStandardContext(second)) {
    throw new LockConfigurationError(
      `${describeStandard(first, second)}: ${decorator} ${LEGACY} And write it with parentheses: ${decorator}().`,
    );
  }
  if (isClass(first) && args.length === 1) throw new LockConfigurationError(onClass(decorator, first));
  const isTarget = (isObject(first) && !isArray(first)) || (typeof first === 'function' && args.length > 2);
  if (isTarget && (typeof second === 'string' || typeof second === 'symbol')) {
    throw new LockConfigurationError(
      `${whereOf(first, second)}: write ${decorator}() with parentheses. Without them the method would run without a ${GRANTS[decorator]}.`,
    );
  }
};

/** The method to wrap, from what the compiler's helper gives to a decorator. */
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
  `${name || '(anonymous class)'}: a class cannot be ${decorator}. Put ${decorator}() on each of its methods that shall ` +
  `run inside a ${GRANTS[decorator]}.`;

const describeStandard = (value: unknown, { kind, name }: StandardContext): string =>
  `${String(name ?? (value as { name?: string } | undefined)?.name ?? '(anonymous)')} (a ${kind})`;
