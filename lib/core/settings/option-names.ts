import { LockConfigurationError } from '../errors/lock.errors.js';
import { formatValue } from '../util/describe.js';
import { homeOf } from './option-table.js';

/** Names of all options of a type; the compiler reports a missing one. */
export type Names<Options> = { readonly [Name in keyof Required<Options>]: true };

/**
 * Rejects an unknown option: a misspelt or misplaced one would be ignored silently. An option that is `undefined` has
 * no effect anywhere, so it is allowed.
 *
 * @param owner owner of the options, for the message: `withLock`
 */
export const checkNames = (given: object, owner: string, names: Readonly<Record<string, true>>): void => {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(names, name) || (given as Record<string, unknown>)[name] === undefined) continue;
    throw new LockConfigurationError(
      `${nameOf(name)} is no option of ${owner}${remedy(name, Object.keys(names))}`,
    );
  }
};

/** Returns a name for a message. Only text that looks like a name is shown without quotes. */
export const nameOf = (name: string): string => (/^[\w$]{1,60}$/.test(name) ? name : formatValue(name));

/** Returns the end of the message about an unknown option: where it belongs, or which options there are. */
export const remedy = (name: string, names: readonly string[]): string => {
  if (name === 'isGlobal') return '. The module is global in any case: leave it out.';
  const home = homeOf(name);
  if (home !== undefined) return `. It is one ${home}.`;
  const meant = nearest(name, names);
  return meant === undefined ? `. Its options are ${names.join(', ')}.` : `. Did you mean ${meant}?`;
};

/** Returns the name that is most similar to what was written; undefined when none is similar. */
const nearest = (written: string, names: readonly string[]): string | undefined => {
  const plain = written.toLowerCase();
  const [best] = names
    .map((name) => ({ name, distance: likeness(plain, name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= Math.max(1, plain.length / 3) ? best.name : undefined;
};

/** Returns the distance of two names. A prefix counts as one slip (`wait` for `waitMs`). */
const likeness = (written: string, name: string): number =>
  written.length > 2 && (name.startsWith(written) || written.startsWith(name)) ? 1 : slips(written, name);

/** Returns the number of letters to insert, remove or replace between two texts. */
const slips = (a: string, b: string): number => {
  // A text that is much longer than a name is no misspelling of it.
  if (a.length > 2 * b.length) return a.length;
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
};
