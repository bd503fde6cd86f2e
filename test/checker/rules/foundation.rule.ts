import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { groundlessMs, stayOf } from './stays.js';

/**
 * Nobody believes longer in a key than the store keeps its hold, whether or not somebody else gets it; nor, when the
 * store let somebody down, longer than until it is told.
 */
export const foundation: Rule = function* (past, { overlapMs }): Generator<Violation> {
  for (const [key, beliefs] of past.beliefs) {
    for (const belief of beliefs) {
      const { lease, to } = belief;
      const stay = stayOf(past, key, belief);
      if (!stay || to - stay.to <= overlapMs) continue;
      const unfounded = groundlessMs(past, lease.process, stay, to);
      if (unfounded <= overlapMs) continue;
      const text = `${lease.id} (${lease.process}) believed in "${key}" ${ms(unfounded)} longer than it was in the store`;
      yield { rule: 'foundation', at: stay.to + overlapMs, text };
    }
  }
};
