import type { Belief, Past } from '../past.js';
import { common, lengthOf, overlaps, type Span } from '../spans.js';
import type { Violation } from '../violation.js';
import { takenAt } from './exclusion.rule.js';
import { ms, type Rule } from './rule.js';
import { staysIn } from './stays.js';

/** The part of a time in which the store stood by what it had said, to those who believed in a permit then. */
const protectedMs = (past: Past, key: string, beliefs: readonly Belief[], span: Span): number => {
  // What was done to the key before any of them had a permit excuses nobody.
  const since = Math.min(...beliefs.filter((one) => common(one, span)).map((one) => takenAt(past, one)));
  return lengthOf(past.protectedParts(key, span, since));
};

/** There are never more permits at once than the limit, neither in the store nor in the minds of those who have them. */
export const limit: Rule = function* (past, { overlapMs }): Generator<Violation> {
  for (const [key, { max }] of past.limits) {
    if (max < 0) continue;
    const stays = staysIn(past).filter((stay) => stay.key === key);
    for (const span of overlaps(stays, max + 1)) {
      if (lengthOf([span]) <= overlapMs) continue;
      const text = `the store gave more than ${max} permits of "${key}", for ${ms(lengthOf([span]))}`;
      yield { rule: 'limit', at: span.from, text };
    }
    const beliefs = past.beliefs.get(key) ?? [];
    for (const span of overlaps(beliefs, max + 1)) {
      const tooMany = protectedMs(past, key, beliefs, span);
      if (tooMany <= overlapMs) continue;
      const text = `more than ${max} callers believed to have a permit of "${key}", for ${ms(tooMany)}`;
      yield { rule: 'limit', at: span.from, text };
    }
  }
};
