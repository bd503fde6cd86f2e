/** Longer texts are cut in messages. */
const LONGEST = 100;

/** `Array.isArray`, which throws on a revoked Proxy. */
export const isArray = (value: unknown): value is readonly unknown[] => {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
};

/** A value in a message: what it is, in a few words. Never throws, and never runs code of the value. */
export const shown = (value: unknown): string => {
  switch (typeof value) {
    case 'string': {
      // A URL that was given in the wrong place may have a password in it.
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

/** What was thrown, as text: anything can be thrown, also what cannot be made a text. */
export const textOf = (thrown: unknown): string => {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return shown(thrown);
  }
};
