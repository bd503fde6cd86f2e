import type { Belief, LeaseSeen, Past } from '../past.js';
import { common, lengthOf } from '../spans.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { stayOf } from './stays.js';

const enclosing = (past: Past, lease: LeaseSeen, key: string): LeaseSeen | undefined => {
  const shared = lease.granted.parts.find((part) => part.key === key)?.sharedWith;
  return shared === undefined ? undefined : past.leases.get(shared);
};

/** Whether one runs inside the other and shares its hold: they need not exclude each other. */
const related = (past: Past, { lease: a, key }: Belief, { lease: b }: Belief): boolean => {
  for (let one: LeaseSeen | undefined = a; one; one = enclosing(past, one, key)) if (one === b) return true;
  for (let one: LeaseSeen | undefined = b; one; one = enclosing(past, one, key)) if (one === a) return true;
  return false;
};

/** When the hold was taken that somebody believes in. */
export const takenAt = (past: Past, belief: Belief): number =>
  stayOf(past, belief.key, belief)?.from ?? -Infinity;

/**
 * No two callers believe in the same lock at the same time, siblings in one lease included; except while the store
 * did not stand by what it had said.
 */
export const exclusion: Rule = function* (past, { overlapMs }): Generator<Violation> {
  for (const [key, beliefs] of past.beliefs) {
    if (past.limits.has(key)) continue;
    let earlier: Belief[] = [];
    for (const belief of beliefs) {
      earlier = earlier.filter(({ to }) => to > belief.from);
      for (const other of earlier) {
        const both = common(other, belief);
        if (!both || related(past, belief, other)) continue;
        // What was done to the key before either of them had it excuses neither.
        const since = Math.min(takenAt(past, belief), takenAt(past, other));
        const overlap = past.protectedParts(key, both, since);
        if (lengthOf(overlap) <= overlapMs) continue;
        yield {
          rule: 'exclusion',
          at: overlap[0]!.from,
          text:
            `${other.lease.id} (${other.lease.process}) and ${belief.lease.id} (${belief.lease.process}) both ` +
            `believed to have "${key}" for ${ms(lengthOf(overlap))}`,
        };
      }
      earlier.push(belief);
    }
  }
};
