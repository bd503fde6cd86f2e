import type { Mode } from '../history.js';
import type { Past, Request } from '../past.js';
import { common } from '../spans.js';
import type { Violation } from '../violation.js';
import type { Rule } from './rule.js';
import { staysIn, type Stay } from './stays.js';

/** For how long a place certainly stands after the question that kept it was sent, in ms. */
const PLACE_LIVES_MS = 4_900;

/** Where an owner stands in the line of a read-write lock, as far as its process knows for certain. */
interface Place {
  readonly key: string;
  readonly owner: string;
  readonly mode: Mode;
  /** When it asked for the first time. */
  readonly askedAt: number;
  /** The questions that were answered "queued". */
  readonly kept: Request[];
  /** From when on it may be over. */
  overAt: number;
}

const placesIn = (past: Past): ReadonlyMap<string, Place> => {
  const places = new Map<string, Place>();
  for (const request of past.requests) {
    const { what, keys, owners, mode, outcome, from } = request;
    if (!mode || !owners) continue;
    for (const [i, owner] of owners.entries()) {
      const key = keys[i]!;
      const name = `${key} ${owner}`;
      const place = places.get(name) ?? { key, owner, mode, askedAt: from, kept: [], overAt: Infinity };
      places.set(name, place);
      const told = what === 'keep' ? outcome?.split(' ')[i] : outcome;
      if (told === 'queued') place.kept.push(request);
      // What is not known may be that it is over.
      else if (told !== 'not-executed') place.overAt = Math.min(place.overAt, from);
    }
  }
  return places;
};

/** Whether the place stood in line for certain all the time from a moment on. */
const stood = ({ kept, overAt }: Place, since: number, until: number): boolean =>
  overAt > until &&
  kept.some(({ to }) => to < since) &&
  kept.some(({ from, to }) => to < until && until < from + PLACE_LIVES_MS);

/** Who waits for a read-write lock, to read or to write, is not passed by those who come later and keep it out. */
export const overtaking: Rule = function* (past): Generator<Violation> {
  if (past.readWrite.size === 0) return;
  const places = placesIn(past);
  const lost = past.all('unprotected').filter(({ key }) => key === undefined);
  const isBefore = ({ key, owner, mode, from }: Stay, place: Place): boolean => {
    if (place.key !== key || place.owner === owner || (mode === 'read' && place.mode === 'read'))
      return false;
    const askedAt = places.get(`${key} ${owner}`)?.askedAt;
    if (askedAt === undefined || !stood(place, askedAt, from)) return false;
    // The line may have been lost meanwhile, or be another one.
    return !lost.some(({ at, until }) =>
      common({ from: place.askedAt, to: from }, { from: at, to: until + 1 }),
    );
  };
  for (const stay of staysIn(past)) {
    if (stay.mode === undefined) continue;
    for (const place of places.values()) {
      if (!isBefore(stay, place)) continue;
      const text = `${stay.owner} was let in to ${stay.mode} "${stay.key}" past ${place.owner}, which stood in line to ${place.mode}`;
      yield { rule: 'overtaking', at: stay.from, text };
    }
  }
};
