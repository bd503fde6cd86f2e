import type { Belief, Past } from '../past.js';
import type { Violation } from '../violation.js';
import type { Rule } from './rule.js';
import { gave, staysIn, type Stay } from './stays.js';

const ownHolds = (beliefs: readonly Belief[]): Belief[] =>
  beliefs.filter(({ lease, key }) =>
    lease.granted.parts.some(
      // Whose owner is told has no token.
      (part) => part.key === key && part.sharedWith === undefined && part.owner === undefined,
    ),
  );

/** Among those whose hold was their own, a later holder has a greater token, and no two have the same. */
function* ofHolders(past: Past): Generator<Violation> {
  for (const [key, beliefs] of past.beliefs) {
    if (past.limits.has(key)) continue;
    const holders = ownHolds(beliefs);
    for (const [i, later] of holders.entries()) {
      for (const earlier of holders.slice(0, i)) {
        if (earlier.lease === later.lease) continue;
        const same = earlier.token === later.token;
        // While nobody is protected, one who was granted before may hear of it after.
        const unsure = past.protectedParts(key, { from: later.from, to: later.from + 0.001 }).length === 0;
        if (!same && unsure) continue;
        if (!same && (earlier.to > later.from || earlier.token < later.token)) continue;
        yield {
          rule: 'tokens',
          at: later.from,
          text: `${later.lease.id} got the token ${later.token} of "${key}" after ${earlier.lease.id} had ${earlier.token}`,
        };
      }
    }
  }
}

/** How long after the end of a store its last answers may arrive, in ms. */
const LAST_REPLIES_MS = 1_000;

/** Nobody has a token that the store did not give, as far as everything is known that it gave. */
function* ofLeases(past: Past): Generator<Violation> {
  const stays = new Map<string, Stay[]>();
  for (const stay of staysIn(past)) stays.set(stay.key, [...(stays.get(stay.key) ?? []), stay]);
  const ends = past.all('unseen').map(({ at }) => at);
  for (const { id, granted } of past.leases.values()) {
    if (ends.some((at) => granted.at >= at && granted.at < at + LAST_REPLIES_MS)) continue;
    for (const { key, token, owner, sharedWith } of granted.parts) {
      // Read locks have no token, but an owner.
      const reads = owner !== undefined && past.readWrite.has(key);
      const known = stays.get(key)?.filter(({ tokens }) => reads || tokens.length > 0) ?? [];
      if (
        sharedWith !== undefined ||
        known.length === 0 ||
        known.some((stay) => gave(stay, { token, owner }))
      )
        continue;
      yield {
        rule: 'tokens',
        at: granted.at,
        text: `${id} got "${key}" ${owner === undefined ? `with the token ${token}` : `as ${owner}`}, which the store did not give`,
      };
    }
  }
}

/** The store gives growing tokens. */
function* ofStore(past: Past): Generator<Violation> {
  const last = new Map<string, number>();
  for (const { key, token, lastToken, owner, at } of past.all('hold')) {
    if (token === undefined) continue;
    const before = last.get(key) ?? -1;
    if (token <= before) {
      const text = `the store gave ${owner} the token ${token} of "${key}" after ${before}`;
      yield { rule: 'tokens', at, text };
    }
    last.set(key, Math.max(before, lastToken ?? token));
  }
}

/** Fencing tokens grow strictly, for each key, in the order of the grants. */
export const tokens: Rule = function* (past) {
  yield* ofHolders(past);
  yield* ofLeases(past);
  yield* ofStore(past);
};
