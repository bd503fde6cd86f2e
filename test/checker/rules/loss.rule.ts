import type { LeaseSeen, Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';

/** A lease that has run out, or of which the caller knows that it is lost, does not come back. */
function* comebacks(lease: LeaseSeen, slackMs: number): Generator<Violation> {
  const until = new Map<string, number>();
  for (const event of lease.beliefs) {
    const before = until.get(event.key);
    const over = Math.min(before ?? Infinity, lease.announced);
    if (before !== undefined && event.at > over + slackMs && event.until > event.at) {
      const text = `${lease.id} (${lease.process}) believes again in "${event.key}", whose lease was over ${ms(event.at - over)} ago`;
      yield { rule: 'loss', at: event.at, text };
    }
    until.set(event.key, event.until);
  }
}

const latenessOf = (past: Past, lease: LeaseSeen, until: number): number => {
  const known = Math.min(lease.announced, lease.ended, past.end);
  return past.unblockedMs(lease.process, { from: until, to: known });
};

/** Whoever still works when its lease ends is told so in time. */
export const loss: Rule = function* (past, { lossMs, overlapMs }): Generator<Violation> {
  for (const lease of past.leases.values()) {
    yield* comebacks(lease, overlapMs);
    const last = new Map(lease.beliefs.map(({ key, until }) => [key, until]));
    for (const [key, until] of last) {
      const lateMs = latenessOf(past, lease, until);
      if (lateMs <= lossMs) continue;
      const text = `${lease.id} (${lease.process}) was not told within ${ms(lateMs)} that its lease on "${key}" was over`;
      yield { rule: 'loss', at: until + lossMs, text };
    }
  }
};
