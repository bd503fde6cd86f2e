import { lengthOf } from '../spans.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { gave, staysIn, type Stay } from './stays.js';

/** Nobody believes longer in a key than the store keeps its hold, whether or not somebody else gets it. */
export const foundation: Rule = function* (past, { overlapMs }): Generator<Violation> {
  const stays = new Map<string, Stay[]>();
  for (const stay of staysIn(past)) stays.set(stay.key, [...(stays.get(stay.key) ?? []), stay]);
  for (const [key, beliefs] of past.beliefs) {
    for (const { lease, token, to } of beliefs) {
      const end = stays.get(key)?.findLast((stay) => gave(stay, token))?.to;
      if (end === undefined || to - end <= overlapMs) continue;
      const unfounded = lengthOf(past.protectedParts(key, { from: end, to }));
      if (unfounded <= overlapMs) continue;
      const text = `${lease.id} (${lease.process}) believed in "${key}" ${ms(unfounded)} longer than it was in the store`;
      yield { rule: 'foundation', at: end + overlapMs, text };
    }
  }
};
