import type { Call, Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';

/** A request that was sent this much after the deadline was meant to be sent in time. */
const SENT_IN_TIME_MS = 2;

/** When the call should be over: at its deadline, or with what was on its way for its keys at that moment. */
const dueAt = (past: Past, { asked, aborted }: Call): number => {
  const { at, waitMs, keys, process } = asked;
  const deadline = waitMs === null ? Infinity : at + waitMs;
  // Whoever calls its wait off does not wait for an answer.
  if (aborted !== undefined && aborted < deadline) return aborted;
  let due = deadline;
  for (const request of past.requests) {
    if (request.process !== process || request.from > deadline + SENT_IN_TIME_MS || request.to < deadline)
      continue;
    if (request.keys.some((key) => keys.includes(key))) due = Math.max(due, request.to);
  }
  return due;
};

/** Nobody waits longer than it said, but for the end of the command in flight; and every call ends. */
export const waiting: Rule = function* (past, { latenessMs }): Generator<Violation> {
  for (const call of past.calls.values()) {
    const { asked, end } = call;
    const due = dueAt(past, call);
    const to = Math.min(end, past.end);
    const lateMs = past.unblockedMs(asked.process, { from: due, to });
    if (lateMs > latenessMs) {
      const text = `${asked.call} (${asked.process}) returned ${ms(lateMs)} after it had to: waitMs ${asked.waitMs}`;
      yield { rule: 'waiting', at: due + latenessMs, text };
    } else if (end === Infinity) {
      yield { rule: 'waiting', at: past.end, text: `${asked.call} (${asked.process}) never returned` };
    }
  }
};
