import type { LeaseSeen, Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { gave, staysIn, type Stay } from './stays.js';

/** The leases that had this hold, one after the other. One of several keys may have got this one long before the last. */
const leasesOn = (past: Past, stay: Stay): LeaseSeen[] => {
  const own = [...past.leases.values()].filter(({ granted: { parts } }) => {
    const [part] = parts;
    return part && parts.length === 1 && part.key === stay.key && !part.sharedWith && gave(stay, part);
  });
  return own.sort((a, b) => a.granted.at - b.granted.at);
};

/** A hold goes from lease to lease of one process, or is joined, for a short while only: then others get their turn. */
export const handOffBatch: Rule = function* (past, { batchMs }): Generator<Violation> {
  for (const stay of staysIn(past)) {
    if (stay.mode !== 'read' && !stay.tokens.some(([first, last]) => last > first)) continue;
    const leases = leasesOn(past, stay);
    const [first] = leases;
    const last = leases.at(-1);
    if (!first || !last) continue;
    const lasted = past.unblockedMs(first.process, { from: first.granted.at, to: last.granted.at });
    if (lasted <= batchMs) continue;
    const text = `${first.process} passed on the hold of "${stay.key}" for ${ms(lasted)}, to ${last.id} in the end`;
    yield { rule: 'hand-off batch', at: last.granted.at, text };
  }
};
