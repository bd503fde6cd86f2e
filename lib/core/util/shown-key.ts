declare const shown: unique symbol;

/** Key as logs, errors and events show it. A key as the caller wrote it is none: the compiler rejects it there. */
export type ShownKey = string & { readonly [shown]: true };

/** Returns a key, as the caller wrote it, as people see it. */
export type ShowKey = (key: string) => ShownKey;

/** The same object with a key that may be shown. */
export type WithShownKey<T> = T extends { readonly key: string }
  ? Omit<T, 'key'> & { readonly key: ShownKey }
  : T;

const REDACTED = '[redacted]' as ShownKey;

/** Applies the option `redactKey`. A hook that fails shows no key, and is reported once. */
export const showKeyWith = (
  redactKey: ((key: string) => unknown) | undefined,
  warn: (message: string) => void,
): ShowKey => {
  if (redactKey === undefined) return (key) => key as ShownKey;
  let hasWarned = false;
  const failed = (how: string): ShownKey => {
    if (!hasWarned) {
      hasWarned = true;
      // Without the error or the value of the hook: both may contain the key.
      warn(
        `redactKey ${how}, so ${REDACTED} is shown instead of the key. It must return a text that is not empty. (Said once.)`,
      );
    }
    return REDACTED;
  };
  return (key) => {
    try {
      const text = redactKey(key);
      if (typeof text === 'string' && text !== '') return text as ShownKey;
      // A promise may reject later.
      if (typeof text === 'object') Promise.resolve(text).catch(() => undefined);
      return failed(text === '' ? 'returned an empty text' : 'returned no text');
    } catch {
      return failed('threw an error');
    }
  };
};
