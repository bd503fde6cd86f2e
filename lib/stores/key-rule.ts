import { LockKeyError } from '../core/errors/lock.errors.js';

/** Prefix of the names of everything that the library keeps beside the locks. */
export const OWN_PREFIX = 'nest_redis_lock:';
/** Prefix of the names under which Redisson keeps the fencing tokens of its RFencedLock. */
export const COUNTER_PREFIX = 'redisson_lock_token:';

/** Returns the part of a name that decides its slot: the text in the first non-empty braces, else the whole name. */
export const hashTag = (name: string): string => {
  const open = name.indexOf('{');
  if (open === -1) return name;
  const close = name.indexOf('}', open + 1);
  return close === -1 || close === open + 1 ? name : name.slice(open + 1, close);
};

/**
 * Rejects two sorts of names. Each store of this package does so, also where it could keep them, so that a test on the
 * memory store finds what Redis would reject.
 *
 * - Names of the library's own keys, and of Redisson's fencing tokens: a lock of that name could stop other locks.
 * - Names whose braces enclose nothing: their channel would be in another slot. In a cluster, Java could acquire such a
 *   lock but never release it.
 *
 * @param name the key as it is in the store
 *
 * @throws {LockKeyError} for such a name; the core adds the key to the text
 */
export const checkStoreKey = (name: string): void => {
  if (name.startsWith(OWN_PREFIX) || name.startsWith(COUNTER_PREFIX)) {
    throw new LockKeyError(
      'the library or Redisson keeps something else under its name. Choose another name or another keyPrefix.',
    );
  }
  if (!name.includes('{') && !name.includes('}')) return;
  if (name.includes('{') && hashTag(name) !== name) return;
  throw new LockKeyError(
    'its braces do not enclose anything, so it cannot work in a Redis Cluster. ' +
      'Use no braces, or put the part that decides the slot into one pair, as in "order:{42}".',
  );
};
