import type { Past } from '../past.js';
import { lengthOf } from '../spans.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';

/** When the hold that a token came with ended in the store, by key and token. */
const endsOfHolds = (past: Past): Map<string, number> => {
  const owners = new Map<string, string[]>();
  const ends = new Map<string, number>();
  for (const event of past.events) {
    if (event.type !== 'hold' && event.type !== 'free') continue;
    const owner = `${event.key} ${event.owner}`;
    if (event.type === 'hold') {
      if (event.token === undefined) continue;
      const token = `${event.key} ${event.token}`;
      owners.set(owner, [...(owners.get(owner) ?? []), token]);
      continue;
    }
    for (const token of owners.get(owner) ?? []) ends.set(token, event.at);
    owners.delete(owner);
  }
  return ends;
};

/** Nobody believes longer in a key than the store keeps its hold, whether or not somebody else gets it. */
export const foundation: Rule = function* (past, { overlapMs }): Generator<Violation> {
  const ends = endsOfHolds(past);
  for (const [key, beliefs] of past.beliefs) {
    for (const { lease, token, to } of beliefs) {
      const end = ends.get(`${key} ${token}`);
      if (end === undefined || to - end <= overlapMs) continue;
      const unfounded = lengthOf(past.protectedParts(key, { from: end, to }));
      if (unfounded <= overlapMs) continue;
      const text = `${lease.id} (${lease.process}) believed in "${key}" ${ms(unfounded)} longer than it was in the store`;
      yield { rule: 'foundation', at: end + overlapMs, text };
    }
  }
};
