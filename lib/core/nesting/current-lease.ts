import { currentSection } from './section.js';
import type { Lease } from '../lease/lease.js';
import { LockConfigurationError } from '../errors/lock.errors.js';
import { shown } from '../errors/describe.js';

/**
 * Like {@link currentLease}, but undefined outside of a locked section: to ask whether one is inside.
 *
 * @example const inside = findLease('order:42') !== undefined;
 */
export const findLease = (key?: string): Lease | undefined => {
  for (let section = currentSection(); section; section = section.parent) {
    const { lease } = section;
    if (lease?.parts.some((part) => part.state !== 'released' && (key === undefined || part.key === key)))
      return lease;
  }
  return undefined;
};

/**
 * The lease of the locked section the caller runs in: the innermost, or the innermost with the given key (as the
 * caller of the lock wrote it, without the prefix). Throws `LockConfigurationError` outside of one.
 *
 * @example
 * const { fencingToken, signal } = currentLease();
 */
export const currentLease = (key?: string): Lease => {
  const lease = findLease(key);
  if (lease) return lease;
  throw new LockConfigurationError(
    key === undefined
      ? 'currentLease() was called outside of a locked section: use it inside a @Locked or @Limited method, withLock, ' +
          'withPermit or lease.run.'
      : `currentLease(${shown(key)}) was called outside of a section that holds this key.`,
    { key },
  );
};
