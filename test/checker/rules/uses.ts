import type { ErrorSeen, EventOf } from '../history.js';
import type { Past } from '../past.js';
import { lengthOf, type Span } from '../spans.js';

/** What a caller did with an object without a holder, and what became of it. */
export interface Use extends Span {
  readonly requested: EventOf<'uses'>;
  readonly process: string;
  /** Whether it was done; `maybe` when nobody can tell, also how late. */
  readonly did: 'yes' | 'no' | 'maybe';
  /** What number was found. */
  readonly found: number | undefined;
  readonly error: ErrorSeen | undefined;
  /** When its caller called it off, while it was under way. */
  readonly calledOff: number | undefined;
}

const didOf = (used: EventOf<'used'> | undefined): Use['did'] => {
  if (!used || used.unknown) return 'maybe';
  return used.error || used.result === false ? 'no' : 'yes';
};

/** All uses, in the order in which they began. Those of a process that crashed end then, of all others that never end at Infinity. */
export const usesOf = (past: Past): Use[] => {
  const ends = new Map(past.all('used').map((event) => [event.use, event]));
  const calledOff = new Map(past.all('called off').map(({ use, at }) => [use, at]));
  return past.all('uses').map((requested) => {
    const { use, process, at: from } = requested;
    const used = ends.get(use);
    const found = typeof used?.result === 'number' ? used.result : undefined;
    const to = used?.at ?? past.crashedAt(process);
    return {
      requested,
      process,
      from,
      to,
      did: didOf(used),
      found,
      error: used?.error,
      calledOff: calledOff.get(use),
    };
  });
};

/** The uses of each object of a sort. */
export const usesByKey = (
  past: Past,
  object: Use['requested']['object'],
): ReadonlyMap<string, readonly Use[]> => {
  const byKey = new Map<string, Use[]>();
  for (const use of usesOf(past)) {
    if (use.requested.object !== object) continue;
    const { key } = use.requested;
    const same = byKey.get(key);
    if (same) same.push(use);
    else byKey.set(key, [use]);
  }
  return byKey;
};

/** When the store lost what it had of the key, or some of it. */
export const lossesOf = (past: Past, key: string): number[] =>
  past
    .all('unprotected')
    .filter((event) => event.key === undefined || event.key === key)
    .map(({ at }) => at);

/** How long at a stretch the process could have gone on in one of these times. */
export const longestCalmMs = (
  past: Past,
  process: string,
  spans: readonly Span[],
): { ms: number; at: number } => {
  let longest = { ms: 0, at: 0 };
  for (const span of spans) {
    for (const calm of past.calm(process, span)) {
      const ms = lengthOf([calm]);
      if (ms > longest.ms) longest = { ms, at: calm.from };
    }
  }
  return longest;
};
