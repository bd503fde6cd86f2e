import { checkStoreKey } from '../../../lib/stores/key-rule.js';

/** What a caller may name a lock. */
export const isKey = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && !/\p{Surrogate}/u.test(value);

/** A key that stores keep: none refuses its braces. */
export const isLockable = (value: unknown): boolean => {
  if (!isKey(value)) return false;
  try {
    checkStoreKey(value as string);
    return true;
  } catch {
    return false;
  }
};

/** One key, or several. Holes of an array are no keys, and what lets nobody look into it is none either. */
export const isKeyOrKeys = (value: unknown): boolean => {
  try {
    return (
      isLockable(value) || (Array.isArray(value) && value.length > 0 && Array.from(value).every(isLockable))
    );
  } catch {
    return false;
  }
};
