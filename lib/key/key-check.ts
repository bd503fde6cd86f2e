import { LockKeyError } from '../core/errors/lock.errors.js';

/** The longest key, in bytes of UTF-8. Redis takes more, but a key beyond this is a value by mistake. */
export const MAX_KEY_BYTES = 65_536;

const MAX_BYTES_PER_CODE_UNIT = 3;

/** What is wrong with a string as a key, or undefined when nothing is. */
export function keyProblem(key: string): string | undefined {
  if (key === '') return 'is empty';
  if (key.length * MAX_BYTES_PER_CODE_UNIT > MAX_KEY_BYTES) {
    const bytes = Buffer.byteLength(key);
    if (bytes > MAX_KEY_BYTES) return `is ${bytes} bytes long, and ${MAX_KEY_BYTES} is the limit`;
  }
  if (!key.isWellFormed()) return 'has half a surrogate pair in it (broken UTF-16), which UTF-8 cannot carry';
  return undefined;
}

/**
 * Makes sure that a key written by hand, or returned by a key function, can be used: a string, not empty,
 * well-formed, at most {@link MAX_KEY_BYTES} bytes. It is used verbatim, nothing is escaped.
 *
 * @param where who asks, for the message, such as `OrderService.pay`
 * @throws LockKeyError
 */
export function checkKey(key: unknown, where?: string): asserts key is string {
  const problem = typeof key === 'string' ? keyProblem(key) : `must be a string, but it is ${describe(key)}`;
  if (problem !== undefined) throw new LockKeyError(`${where ? `${where}: ` : ''}the lock key ${problem}.`);
}

/** A key of a list that has a mode of its own. */
interface CheckedKey {
  readonly key: string;
  readonly mode: 'read' | 'write';
}

/**
 * Like {@link checkKey}, for one key or a list of them, each of which may have a mode of its own. Answers the keys in the
 * order given; duplicates stay.
 *
 * @throws LockKeyError also for an empty list, and for a mode that there is not
 */
export function checkKeys(given: unknown, where?: string): readonly (string | CheckedKey)[] {
  const keys = elementsOf(given);
  if (!keys) {
    checkKey(given, where);
    return [given];
  }
  if (keys.length === 0) {
    throw new LockKeyError(
      `${where ? `${where}: ` : ''}the list of lock keys is empty, so nothing would be locked.`,
    );
  }
  return keys.map((one) => {
    const { key, mode } = fieldsOf(one, where) ?? { key: one, mode: undefined };
    checkKey(key, where);
    return mode === undefined ? key : { key, mode };
  });
}

const FIELDS: readonly string[] = ['key', 'mode'];

/**
 * What a list has for a key with a mode of its own, its key not checked yet; undefined for anything else. A Proxy, or a getter,
 * may throw at any look.
 *
 * @throws LockKeyError for a field or a mode that there is not
 */
export function fieldsOf(
  given: unknown,
  where?: string,
): { readonly key: unknown; readonly mode: 'read' | 'write' | undefined } | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  let names: readonly string[], key: unknown, mode: unknown;
  try {
    if (Array.isArray(given) || !('key' in given)) return undefined;
    names = Object.keys(given);
    ({ key, mode } = given as { key: unknown; mode?: unknown });
  } catch {
    return undefined;
  }
  const problem = (what: string): LockKeyError => new LockKeyError(`${where ? `${where}: ` : ''}${what}`);
  const unknown = names.find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) {
    throw problem(
      `a lock key of a list is a string or { key, mode }, and has no ${JSON.stringify(unknown)}.`,
    );
  }
  if (mode !== undefined && mode !== 'read' && mode !== 'write') {
    throw problem(`the mode of a lock key must be "read" or "write", but is ${shortly(mode)}.`);
  }
  return { key, mode };
}

/**
 * Like {@link checkKey}, for who takes one key and never a list.
 *
 * @param who who asks, for the message, such as `withPermit`
 */
export function checkOneKey(key: unknown, who: string): string {
  if (elementsOf(key)) throw new LockKeyError(oneKey(who));
  checkKey(key, who);
  return key;
}

/** What is wrong with several keys where permits are counted. */
export const oneKey = (who: string): string =>
  `${who} takes one key, since permits are counted for each. Nest the calls to have permits of several.`;

/** What a value is; of a word the word itself: it is none of a caller's data, but a name of the library, misspelt. */
const shortly = (value: unknown): string =>
  typeof value === 'string' && value.length <= 20 ? JSON.stringify(value) : describe(value);

/** The elements of an array, as they are now; undefined when it is none, or lets nobody look into it. */
export function elementsOf(value: unknown): readonly unknown[] | undefined {
  try {
    return Array.isArray(value) ? Array.from(value as unknown[]) : undefined;
  } catch {
    return undefined;
  }
}

/** What a value is, in words, for an error message. Never the value itself: it may be long, or a secret. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case 'undefined':
    case 'boolean':
      return String(value);
    case 'number':
      return Number.isFinite(value) ? 'a number' : String(value);
    case 'string':
      return value === '' ? 'an empty string' : 'a string';
    case 'object':
      return value === null ? 'null' : describeObject(value);
    default:
      return `a ${typeof value}`;
  }
}

function describeObject(value: object): string {
  try {
    if (Array.isArray(value)) return 'an array';
    const prototype: unknown = Object.getPrototypeOf(value);
    const name: unknown = (prototype as { constructor?: { name?: unknown } } | null)?.constructor?.name;
    const isTelling = typeof name === 'string' && /^[\w$]{1,60}$/.test(name) && name !== 'Object';
    return isTelling ? `an object (${name})` : 'an object';
  } catch {
    return 'an object that cannot be looked into';
  }
}
