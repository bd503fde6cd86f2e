/** Maximum length of a text in a message. */
const LONGEST = 100;

/** Like `Array.isArray`, but false for a revoked Proxy, on which that throws. */
export const isArray = (value: unknown): value is readonly unknown[] =>
  readOf(() => Array.isArray(value)) ?? false;

/** Returns a short description of a value for a message. Never throws, and never runs code of the value. */
export const formatValue = (value: unknown): string => {
  switch (typeof value) {
    case 'string': {
      // A URL that was given in the wrong place may contain a password.
      const safe = value.replace(/(:\/\/).*@/s, '$1***@');
      return safe.length > LONGEST ? `"${safe.slice(0, LONGEST)}…"` : `"${safe}"`;
    }
    case 'function':
      return 'a function';
    case 'object':
      if (value === null) return 'null';
      return isArray(value) ? 'an array' : 'an object';
    default:
      return String(value);
  }
};

/** Returns what is read of a thrown value; undefined where reading throws. Any value can be thrown, also a revoked Proxy. */
export const readOf = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch {
    return undefined;
  }
};

/** Returns the message of what was thrown. Any value can be thrown, also one without a text. */
export const textOf = (thrown: unknown): string =>
  readOf(() => String(thrown instanceof Error ? thrown.message : thrown)) ?? formatValue(thrown);

/** Returns text that stays in its line of a log and cannot colour it. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ');
