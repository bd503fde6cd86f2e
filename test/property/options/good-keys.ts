/** What a caller may name a lock. */
export const isKey = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && !/\p{Surrogate}/u.test(value);

/** One key, or several. Holes of an array are no keys, and what lets nobody look into it is none either. */
export const isKeyOrKeys = (value: unknown): boolean => {
  try {
    return isKey(value) || (Array.isArray(value) && value.length > 0 && Array.from(value).every(isKey));
  } catch {
    return false;
  }
};
