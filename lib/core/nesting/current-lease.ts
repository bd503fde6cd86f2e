import { currentSection } from './section.js';
import type { Lease } from '../lease/lease.js';
import { LockConfigurationError } from '../errors/lock.errors.js';
import { invalidOption } from '../settings/option-checks.js';
import { formatValue } from '../util/describe.js';

/**
 * Like {@link currentLease}, but returns undefined outside a locked section. Use it to check whether code runs inside
 * one.
 *
 * @example const inside = findLease('order:42') !== undefined;
 */
export const findLease = (key?: string): Lease | undefined => {
  if (key !== undefined && typeof key !== 'string')
    invalidOption('The key of currentLease() and findLease()', 'a string', key);
  for (let section = currentSection(); section; section = section.parent) {
    const { lease } = section;
    if (lease?.parts.some((part) => part.state !== 'released' && (key === undefined || part.key === key)))
      return lease;
  }
  return undefined;
};

/**
 * Returns the lease of the innermost locked section of the asynchronous context. With a key, it returns the innermost lease
 * on that key, as the caller of the lock wrote it, without the prefix.
 *
 * Call it in the first line of a `@Locked` method, outside of every callback, and pass the lease on. In a task of a shared
 * queue the context may be that of another call, and so may the lease. In `withLock`, use the argument of the section.
 *
 * @throws LockConfigurationError outside such a section
 *
 * @example
 * const lease = currentLease();
 * await queue.add(() => save(order, lease.fencingToken));
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
