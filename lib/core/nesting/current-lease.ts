import { currentSection } from './section.js';
import type { Lease } from '../lease/lease.js';
import { LockConfigurationError } from '../errors/lock.errors.js';
import { formatValue } from '../errors/describe.js';

/**
 * Like {@link currentLease}, but returns undefined outside a locked section. Use it to check whether code runs inside
 * one.
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
 * Returns the lease of the innermost locked section that the caller runs in. With a key, it returns the innermost lease
 * on that key, as the caller of the lock wrote it, without the prefix.
 *
 * @throws LockConfigurationError outside such a section
 *
 * @example
 * const { fencingToken, signal } = currentLease();
 */
export const currentLease = (key?: string): Lease => {
  const lease = findLease(key);
  if (lease) return lease;
  // The innermost service decides how keys are shown. Outside of all there is none, and the key is not shown.
  const around = currentSection()?.lease;
  const shown = typeof key === 'string' ? around?.shown(key) : undefined;
  throw new LockConfigurationError(
    shown === undefined
      ? 'currentLease() was called outside of a locked section: use it inside a @Locked or @Limited method, withLock, ' +
          'withPermit or lease.run.'
      : `currentLease(${formatValue(shown)}) was called outside of a section that holds this key.`,
    { key: shown },
  );
};
