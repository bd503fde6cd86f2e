import { modeOf, type Call, type Past } from '../past.js';
import { common, lengthOf, type Span } from '../spans.js';
import type { Violation } from '../violation.js';
import { heldSpans } from './held-spans.js';
import { queueSpans, type QueueSpan } from './queue-spans.js';
import type { Rule } from './rule.js';

const isBusyReply = ({ refused }: Call): boolean =>
  refused !== undefined && (refused.error === undefined || refused.error.code === 'LOCK_TAKEN');

/** Whether another caller of the process asked for one of the keys, had it, or gave it back, during this time. */
const othersHere = (past: Past, call: Call, span: Span): boolean => {
  const { process, keys } = call.requested;
  for (const { process: requester, keys: wanted, what, from, to } of past.requests) {
    if (requester !== process || to + 1 < span.from || !wanted.some((key) => keys.includes(key))) continue;
    // Its own question does not count; a release is always somebody else's.
    if (from < span.from || (what === 'release' && from <= span.to)) return true;
  }
  for (const other of past.calls.values()) {
    if (other === call || other.requested.process !== process) continue;
    if (!other.requested.keys.some((key) => keys.includes(key))) continue;
    const lease = other.granted && past.leases.get(other.granted.lease);
    const until = lease ? lease.ended + (other.requested.holdAtLeastMs ?? 0) : other.end;
    // A process that was stopped may end one call and begin the next at the same moment.
    if (common({ from: other.requested.at, to: until + 1 }, span)) return true;
  }
  return false;
};

/** Whether the store stood by what it said about the keys all the time: otherwise nobody knows who had them. */
const isProtected = (past: Past, keys: readonly string[], span: Span): boolean =>
  keys.every((key) => lengthOf(past.protectedParts(key, span)) === span.to - span.from);

/** Who is told that a key is taken was in somebody's way: a store that fails never passes for a lock that is taken. */
export const busy: Rule = function* (past, { clocksMs }): Generator<Violation> {
  const held = heldSpans(past);
  const written = past.readWrite.size > 0 ? heldSpans(past, 'read') : held;
  if (!held || !written) return;
  // Nobody overtakes, not even somebody who is gone and whose place is still there.
  const queues = queueSpans(past);
  const oldQueues = past.all('old lines').map(({ at, until }): Span => ({ from: at, to: until }));
  for (const call of past.calls.values()) {
    if (!isBusyReply(call)) continue;
    const span = { from: call.requested.at - clocksMs, to: call.end + clocksMs + 0.001 };
    // Not a place that its own question may have made: a question without an answer never passes for "taken".
    const isBlocking = ({ process, isCertain, from }: QueueSpan): boolean =>
      isCertain || process !== call.requested.process || from < span.from;
    const blocking = (key: string): readonly Span[] => {
      const reads = modeOf(call.requested, key) === 'read';
      const queue = (queues.get(key) ?? []).filter(isBlocking);
      // Readers are not in the way of readers.
      return reads
        ? [...(written.get(key) ?? []), ...queue.filter(({ mode }) => mode !== 'read')]
        : [...(held.get(key) ?? []), ...queue];
    };
    const taken =
      oldQueues.some((one) => common(one, span)) ||
      call.requested.keys.some((key) => blocking(key).some((one) => common(one, span)));
    if (taken || othersHere(past, call, span) || !isProtected(past, call.requested.keys, span)) continue;
    const { keys, call: name, process } = call.requested;
    const ends = keys.flatMap((key) => blocking(key).map(({ to }) => to)).filter((to) => to <= span.from);
    const since = ends.length > 0 ? `since ${Math.max(...ends)}` : 'before';
    const text = `${name} (${process}) was told that ${keys.join(', ')} is taken, but nobody had it ${since}`;
    yield { rule: 'busy', at: call.end, text };
  }
};
