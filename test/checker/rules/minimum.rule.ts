import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { stayOf } from './stays.js';

/** A hold that is to stay for a least time is not given back before, however the work ended. */
export const minimum: Rule = function* (past, { overlapMs }): Generator<Violation> {
  for (const { requested, granted } of past.calls.values()) {
    if (!granted || !requested.holdAtLeastMs) continue;
    for (const part of granted.parts) {
      const { key, sharedWith } = part;
      const stay = stayOf(past, key, part);
      if (!stay || stay.how !== 'released' || sharedWith !== undefined) continue;
      // After a failover the same hold is there again.
      const lasted = stay.to - Math.min(stay.from, granted.at);
      if (lasted >= requested.holdAtLeastMs - overlapMs) continue;
      const text = `${granted.lease} (${requested.process}) gave "${key}" back after ${ms(lasted)} of ${requested.holdAtLeastMs} ms`;
      yield { rule: 'minimum', at: stay.to, text };
    }
  }
};
