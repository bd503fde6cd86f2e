import { modeOf, type Belief, type LeaseSeen, type Past } from '../past.js';
import { common, lengthOf } from '../spans.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { singleIn, stayOf, staysIn } from './stays.js';

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

const sharedWith = ({ lease, key }: Belief): string | undefined =>
  lease.granted.parts.find((part) => part.key === key)?.sharedWith;

const reads = (past: Past, { key, lease }: Belief): boolean =>
  modeOf(past.calls.get(lease.granted.call)!.requested, key) === 'read';

const readsFrom = (past: Past, belief: Belief): number =>
  reads(past, belief) ? -Infinity : belief.lease.readsFrom;

/** Since when both only read; siblings never do, who go in one after the other whatever they do. */
const togetherFrom = (past: Past, one: Belief, other: Belief): number => {
  const parent = sharedWith(one);
  const areSiblings = parent !== undefined && parent === sharedWith(other);
  return areSiblings ? Infinity : Math.max(readsFrom(past, one), readsFrom(past, other));
};

/** A hold may have been there before: a process passes it on among its callers for so long, in ms, and is told late. */
const PASSED_ON_MS = 200;

/** When the hold was taken that somebody believes in; where nobody watched the store, when that was at the earliest. */
export const takenAt = (past: Past, belief: Belief): number => {
  if (past.all('hold').length === 0) return belief.lease.granted.at - PASSED_ON_MS;
  return stayOf(past, belief.key, belief)?.from ?? -Infinity;
};

/** In the store nobody is beside a writer, not for a moment, whatever its clients know of it. */
function* inStore(past: Past, overlapMs: number): Generator<Violation> {
  const stays = staysIn(past);
  for (const writer of stays) {
    const single = writer.mode === 'write' && singleIn(writer);
    if (!single) continue;
    for (const other of stays) {
      const both = other !== writer && other.key === writer.key ? common(single, other) : undefined;
      // Of two writers the one that came later.
      if (!both || lengthOf([both]) <= overlapMs || (other.mode === 'write' && other.from > writer.from))
        continue;
      const text = `the store gave "${writer.key}" to ${writer.owner} to write beside ${other.owner}, for ${ms(lengthOf([both]))}`;
      yield { rule: 'exclusion', at: both.from, text };
    }
  }
}

/**
 * No two callers believe in the same lock at the same time, siblings in one lease included; except readers, who
 * may be many, and while the store did not stand by what it had said.
 */
export const exclusion: Rule = function* (past, { overlapMs }): Generator<Violation> {
  yield* inStore(past, overlapMs);
  for (const [key, beliefs] of past.beliefs) {
    if (past.limits.has(key)) continue;
    let earlier: Belief[] = [];
    for (const belief of beliefs) {
      earlier = earlier.filter(({ to }) => to > belief.from);
      for (const other of earlier) {
        const until = togetherFrom(past, belief, other);
        const both = common({ ...other, to: Math.min(other.to, until) }, belief);
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
