import type { Call, Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';

/** A request that was sent this much after the deadline was meant to be sent in time. */
const SENT_IN_TIME_MS = 2;

/** When what is on its way for one of the keys at this moment will be answered. */
const answeredAt = (past: Past, { process, keys }: Call['asked'], moment: number): number => {
  let answered = moment;
  for (const request of past.requests) {
    if (request.process !== process || request.to < moment) continue;
    const lateMs = past.unblockedMs(process, { from: moment, to: request.from });
    if (lateMs > SENT_IN_TIME_MS || !request.keys.some((key) => keys.includes(key))) continue;
    answered = Math.max(answered, request.to);
  }
  return answered;
};

/** When the call should be over: at its deadline, or with what was on its way for its keys at that moment. */
const dueAt = (past: Past, { asked, aborted }: Call): number => {
  const deadline = asked.waitMs === null ? Infinity : past.awakeAt(asked.process, asked.at) + asked.waitMs;
  // Whoever calls its wait off does not wait for an answer.
  if (aborted !== undefined && aborted < deadline) return aborted;
  let due = answeredAt(past, asked, deadline);
  // Each key is asked for at least once, one after the other; then all get their lease at once.
  const others = new Set(asked.keys).size - 1;
  for (let more = others > 0 ? others + 1 : 0; more > 0; more--) due = answeredAt(past, asked, due);
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
