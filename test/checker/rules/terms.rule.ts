import type { LeaseSeen, Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { gave, staysIn, type Stay } from './stays.js';

/** Clocks of machines differ by so much, in ms per ms; and what is under way takes a moment. */
const DRIFT = 0.0002;
const SLACK_MS = 5;

const partOf = ({ granted }: LeaseSeen, key: string) => granted.parts.find((part) => part.key === key);

/** The lease that has the hold itself, for one that runs inside it. */
const holderOf = (past: Past, lease: LeaseSeen, key: string): LeaseSeen => {
  let holder = lease;
  for (let id = partOf(lease, key)?.sharedWith; id; id = partOf(holder, key)?.sharedWith) {
    const outer = past.leases.get(id);
    if (!outer) break;
    holder = outer;
  }
  return holder;
};

/** Those who share a hold have together what any of them asks for. */
const nameOf = (holder: LeaseSeen, key: string): string =>
  `${partOf(holder, key)?.owner ?? holder.id} ${key}`;

/** What the holder of a key and those inside its lease have asked for, up to a moment. */
class Terms {
  private readonly extensions = new Map<string, { readonly at: number; readonly ms: number }[]>();

  constructor(
    private readonly past: Past,
    /** How far apart the moments of the store and of its clients may be. */
    private readonly toleranceMs: number,
  ) {
    for (const { lease, at, ms: wanted } of past.all('extends')) this.add(past.leases.get(lease), at, wanted);
    for (const { requested, granted } of past.calls.values()) {
      if (granted && requested.holdAtLeastMs) {
        this.add(past.leases.get(granted.lease), granted.at, requested.holdAtLeastMs);
      }
    }
  }

  private add(lease: LeaseSeen | undefined, at: number, wanted: number): void {
    for (const { key } of lease?.granted.parts ?? []) {
      const name = nameOf(holderOf(this.past, lease!, key), key);
      this.extensions.set(name, [...(this.extensions.get(name) ?? []), { at, ms: wanted }]);
    }
  }

  /** Undefined when the history does not say what lease it asked for. */
  of(holder: LeaseSeen, key: string, until: number): number | undefined {
    const requested = this.past.calls.get(holder.granted.call)?.requested;
    if (requested?.leaseMs === undefined) return undefined;
    let max = Math.max(requested.leaseMs, requested.holdAtLeastMs ?? 0);
    for (const { at, ms: wanted } of this.extensions.get(nameOf(holder, key)) ?? []) {
      if (at <= until + this.toleranceMs) max = Math.max(max, wanted);
    }
    return max * (1 + DRIFT) + SLACK_MS;
  }
}

/** The leases that had this hold, one after the other. */
const holdersOf = (past: Past, stay: Stay): LeaseSeen[] =>
  [...past.leases.values()]
    .filter((lease) => {
      const part = partOf(lease, stay.key);
      return part && !part.sharedWith && gave(stay, part);
    })
    .sort((a, b) => a.granted.at - b.granted.at);

/** What the store was made to promise, and to whom. */
function* inStore(past: Past, terms: Terms, provisionalLeaseMs: number): Generator<Violation> {
  const arms = new Map<string, { readonly at: number; readonly until: number; readonly token?: number }[]>();
  for (const event of past.events) {
    if ((event.type !== 'hold' && event.type !== 'armed') || event.until === undefined) continue;
    const { at, until } = event;
    const name = `${event.key} ${event.owner}`;
    const before = arms.get(name) ?? [];
    // An owner that requests its hold again has it armed first, and then gets its tokens.
    const last = before.at(-1);
    const isAgain = event.type === 'hold' && last?.at === at && last.until === until;
    const token = event.type === 'hold' ? event.token : undefined;
    arms.set(name, [...(isAgain ? before.slice(0, -1) : before), { at, until, token }]);
  }
  if (arms.size === 0) return;
  // A server whose clock is set back makes all of its holds last longer, and a replica has leases of an earlier time.
  const unsure = past.all('unprotected').filter(({ key }) => key === undefined);
  for (const stay of staysIn(past)) {
    const holders = holdersOf(past, stay);
    const armed = (arms.get(`${stay.key} ${stay.owner}`) ?? []).filter(
      ({ at }) =>
        stay.from <= at && at <= stay.to && !unsure.some((one) => stay.from <= one.at && one.at <= at),
    );
    for (const { at, until, token } of armed) {
      const requester = holders.find((one) => partOf(one, stay.key)?.token === token);
      const holder = requester ?? holders.findLast(({ granted }) => granted.at <= at) ?? holders[0];
      const max = holder ? (terms.of(holder, stay.key, at) ?? Infinity) : Infinity;
      if (!holder || until - at <= Math.max(max, provisionalLeaseMs + SLACK_MS)) continue;
      const text = `the hold of ${holder.id} (${holder.process}) on "${stay.key}" was made to last ${ms(until - at)}, which it did not ask for`;
      yield { rule: 'terms', at, text };
    }
    for (const holder of holders.slice(1)) {
      const { at } = holder.granted;
      const until = armed.findLast((one) => one.at <= at)?.until ?? at;
      if (until - at <= (terms.of(holder, stay.key, at) ?? Infinity)) continue;
      const text = `${holder.id} (${holder.process}) got a hold on "${stay.key}" that lasts ${ms(until - at)}, which it did not ask for`;
      yield { rule: 'terms', at, text };
    }
  }
}

/** What callers believe. */
function* inMind(past: Past, terms: Terms): Generator<Violation> {
  for (const lease of past.leases.values()) {
    for (const { key, at, until } of lease.beliefs) {
      if (until - at <= (terms.of(holderOf(past, lease, key), key, at) ?? Infinity)) continue;
      const text = `${lease.id} (${lease.process}) believes in "${key}" for ${ms(until - at)}, which nobody asked for`;
      yield { rule: 'terms', at, text };
      break;
    }
  }
}

/** What a caller asked for itself, a long extension, reaches nobody else; and nobody believes in more than was asked for. */
export const terms: Rule = function* (past, { overlapMs, provisionalLeaseMs }): Generator<Violation> {
  const requested = new Terms(past, overlapMs);
  yield* inStore(past, requested, provisionalLeaseMs);
  yield* inMind(past, requested);
};
