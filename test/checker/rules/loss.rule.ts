import type { EventOf } from '../history.js';
import type { LeaseSeen, Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';

/** When a caller began to believe: its process may have had no processor between the reply and the record of it. */
const believedFrom = (
  past: Past,
  { process }: LeaseSeen,
  { key, at }: EventOf<'believes'>,
  slackMs: number,
) => {
  const replies = past.requests.filter(
    (one) => one.process === process && one.what === 'extend' && one.to <= at && one.keys.includes(key),
  );
  const repliedAt = Math.max(...replies.map(({ to }) => to));
  const isRecord = past.unblockedMs(process, { from: repliedAt, to: at }) <= slackMs;
  return isRecord ? repliedAt : past.begunAt(process, at, 'uninterrupted');
};

/** A lease that has run out, or of which the caller knows that it is lost, does not come back. */
function* comebacks(past: Past, lease: LeaseSeen, slackMs: number): Generator<Violation> {
  const until = new Map<string, number>();
  for (const event of lease.beliefs) {
    const before = until.get(event.key);
    const over = Math.min(before ?? Infinity, lease.announced);
    const from = believedFrom(past, lease, event, slackMs);
    if (before !== undefined && from > over + slackMs && event.until > event.at) {
      const text = `${lease.id} (${lease.process}) believes again in "${event.key}", whose lease was over ${ms(from - over)} ago`;
      yield { rule: 'loss', at: event.at, text };
    }
    until.set(event.key, event.until);
  }
}

/** Answers that are this close together, in ms, came in at once. */
const AT_ONCE_MS = 1;

/** How long the extensions of the key that were answered last had been under way: they count from before that. */
const underWayMs = (past: Past, process: string, key: string, at: number): number => {
  const replied = past.requests.filter(
    (one) => one.process === process && one.what === 'extend' && one.to <= at && one.keys.includes(key),
  );
  const last = Math.max(...replied.map(({ to }) => to));
  const newest = replied.filter(({ to }) => to >= last - AT_ONCE_MS);
  return Math.max(0, ...newest.map(({ from, to }) => to - past.begunAt(process, from)));
};

/** Whether a lease lasts at this moment: it ends with the last of those that run inside it, once its process is at work. */
const lasts = (past: Past, lease: LeaseSeen, at: number): boolean => {
  const isInside = ({ granted }: LeaseSeen): boolean =>
    granted.at <= at && granted.parts.some(({ sharedWith }) => sharedWith === lease.id);
  return (
    at < past.awakeAt(lease.process, lease.ended) ||
    [...past.leases.values()].some((one) => isInside(one) && lasts(past, one, at))
  );
};

/** Whether another lease in the process has extended its hold on the key, and lasts at this moment. */
const isLent = (past: Past, lease: LeaseSeen, { key, at }: EventOf<'believes'>): boolean =>
  past.all('extends').some((extension) => {
    if (extension.at > at || at > extension.at + extension.ms) return false;
    const other = past.leases.get(extension.lease);
    if (!other || other === lease || other.process !== lease.process) return false;
    return other.granted.parts.some((part) => part.key === key) && lasts(past, other, at);
  });

/** A renewal never takes anything away from what a lease has without the extensions of others. */
function* shortenings(past: Past, lease: LeaseSeen, byMs: number): Generator<Violation> {
  const until = new Map<string, number>();
  for (const event of lease.beliefs) {
    if (isLent(past, lease, event)) continue;
    const lessMs = (until.get(event.key) ?? -Infinity) - event.until;
    until.set(event.key, event.until);
    if (lessMs <= byMs + underWayMs(past, lease.process, event.key, event.at)) continue;
    if (past.protectedParts(event.key, { from: event.at, to: event.at + 1 }).length === 0) continue;
    const text = `a renewal made the lease of ${lease.id} (${lease.process}) on "${event.key}" shorter by ${ms(lessMs)}`;
    yield { rule: 'shortened', at: event.at, text };
  }
}

const latenessOf = (past: Past, lease: LeaseSeen, until: number): number => {
  const known = Math.min(lease.announced, lease.ended, past.end);
  return past.unblockedMs(lease.process, { from: until, to: known });
};

/** Whoever still works when its lease ends is told so in time. */
export const loss: Rule = function* (past, { lossMs, overlapMs, shorteningMs }): Generator<Violation> {
  for (const lease of past.leases.values()) {
    yield* comebacks(past, lease, overlapMs);
    yield* shortenings(past, lease, shorteningMs);
    const last = new Map(lease.beliefs.map(({ key, until }) => [key, until]));
    for (const [key, until] of last) {
      const lateMs = latenessOf(past, lease, until);
      if (lateMs <= lossMs) continue;
      const text = `${lease.id} (${lease.process}) was not told within ${ms(lateMs)} that its lease on "${key}" was over`;
      yield { rule: 'loss', at: until + lossMs, text };
    }
  }
};
