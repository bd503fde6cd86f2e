import { LockConfigurationError, LockKeyError } from '../errors/lock.errors.js';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { ShowKey } from '../util/shown-key.js';
import type { KeyOfCall } from '../settings/acquire-options.js';
import { checkOnceMode, type LockCall } from '../settings/lock-call.js';

/** A key, and the kind of lock that is wanted of it. */
interface WantedKey {
  readonly key: string;
  readonly kind: LockKind;
}

/**
 * Returns the kind for a key that a call lists as two kinds: a writer may also read. Any other two kinds exclude each
 * other, so the caller would deadlock with itself.
 *
 * @throws LockConfigurationError for two kinds that exclude each other
 */
export const oneKindOf = (given: string, one: LockKind, other: LockKind, shown: ShowKey): LockKind => {
  if (one === other) return one;
  const isHalf = (kind: LockKind): boolean => kind === 'read' || kind === 'write';
  if (isHalf(one) && isHalf(other)) return 'write';
  const key = shown(given);
  throw new LockConfigurationError(
    `"${key}" is wanted twice by one call, as a ${kindOf(one).noun} and as a ${kindOf(other).noun}, which exclude each ` +
      'other. Give it once.',
    { key },
  );
};

/** Refuses a key with its own mode in a call for fair locks. */
export const checkOwnMode = (
  given: string,
  kind: LockKind,
  kindOfCall: LockKind | undefined,
  shown: ShowKey,
): void => {
  if (kindOfCall !== 'fair' || kind === 'fair') return;
  const key = shown(given);
  throw new LockConfigurationError(
    `"${key}" has a mode, and the call has mode: "fair". A read-write lock has an order of its own: leave out one of them.`,
    { key },
  );
};

/** Returns the mode that a key has in a list of keys; undefined without its own mode. */
export const kindIn = (keys: readonly KeyOfCall[], key: string): LockKind | undefined => {
  const modes = keys.map((one) => (typeof one === 'object' && one.key === key ? one.mode : undefined));
  return modes.includes('write') ? 'write' : modes.find((mode) => mode !== undefined);
};

/** Returns each key of a call once, with its kind, in the order of code units. */
export const eachOnce = (
  keys: readonly KeyOfCall[],
  { kind: kindOfCall, oncePerMs }: LockCall,
  shown: ShowKey,
): WantedKey[] => {
  if (keys.length === 0) throw new LockKeyError('There is no key to lock: the list of keys is empty.');
  const kinds = new Map<string, LockKind>();
  for (const one of keys) {
    const [key, kind] = typeof one === 'string' ? [one, kindOfCall] : [one.key, one.mode];
    checkOwnMode(key, kind, kindOfCall, shown);
    if (oncePerMs !== undefined) checkOnceMode(kind);
    kinds.set(key, oneKindOf(key, kinds.get(key) ?? kind, kind, shown));
  }
  return [...kinds.keys()].sort().map((key) => ({ key, kind: kinds.get(key)! }));
};
