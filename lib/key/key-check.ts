import { LockKeyError } from '../core/errors/lock.errors.js';

/**
 * Maximum length of a key, in bytes of UTF-8. Redis takes longer keys, but such a key is probably a value by mistake.
 */
export const MAX_KEY_BYTES = 65_536;

const MAX_BYTES_PER_CODE_UNIT = 3;

/** Returns what is wrong with a string as a key; undefined for a valid key. */
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
 * Checks a key that is used verbatim: one written by hand, or returned by a key function. It has to be a string, not
 * empty, well-formed, and at most {@link MAX_KEY_BYTES} bytes.
 *
 * @param where caller for the message, such as `OrderService.pay`
 * @throws LockKeyError for an invalid key
 */
export function checkKey(key: unknown, where?: string): asserts key is string {
  const problem = typeof key === 'string' ? keyProblem(key) : `must be a string, but it is ${describe(key)}`;
  if (problem !== undefined) throw new LockKeyError(`${where ? `${where}: ` : ''}the lock key ${problem}.`);
}

/** Key of a list that has its own mode. */
interface CheckedKey {
  readonly key: string;
  readonly mode: 'read' | 'write';
}

/**
 * Like {@link checkKey}, for one key or a list of keys, each of which may have its own mode. Returns the keys in the
 * given order, with duplicates.
 *
 * @throws LockKeyError also for an empty list, and for an unknown mode
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
 * Returns the own mode of a key, if it has one.
 *
 * @throws LockKeyError for any other value
 */
export const checkKeyMode = (mode: unknown, where?: string): 'read' | 'write' | undefined => {
  if (mode === undefined || mode === 'read' || mode === 'write') return mode;
  const at = where ? `${where}: ` : '';
  throw new LockKeyError(`${at}the mode of a lock key must be "read" or "write", but is ${shortly(mode)}.`);
};

/**
 * Returns the fields of a list entry with its own mode; undefined for anything else. The key is not checked yet.
 * Reading a Proxy or a getter may throw.
 *
 * @throws LockKeyError for an unknown field or mode
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
  return { key, mode: checkKeyMode(mode, where) };
}

/**
 * Like {@link checkKey}, for calls that take one key and never a list.
 *
 * @param who caller for the message, such as `withPermit`
 */
export function checkOneKey(key: unknown, who: string): string {
  if (elementsOf(key)) throw new LockKeyError(oneKey(who));
  checkKey(key, who);
  return key;
}

/** Returns the message for a list of keys where permits are counted. */
export const oneKey = (who: string): string =>
  `${who} takes one key, since permits are counted for each. Nest the calls to have permits of several.`;

/** Returns a value as text. A short word is quoted: it is a misspelt name of the library, not a caller's data. */
const shortly = (value: unknown): string =>
  typeof value === 'string' && value.length <= 20 ? JSON.stringify(value) : describe(value);

/** Returns a copy of an array; undefined for anything else, and for a Proxy that throws. */
export function elementsOf(value: unknown): readonly unknown[] | undefined {
  try {
    return Array.isArray(value) ? Array.from(value as unknown[]) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the type of a value in words, for an error message. Never the value itself: it may be long, or a secret. */
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
