import { modeOf, type Call, type Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { usesOf, type Use } from './uses.js';

/** When what is on its way for one of the keys at this moment will be answered. */
const answeredAt = (
  past: Past,
  { process, keys }: Pick<Call['asked'], 'process' | 'keys'>,
  moment: number,
  sendingMs: number,
): number => {
  let answered = moment;
  for (const request of past.requests) {
    if (request.process !== process || request.to < moment) continue;
    if (!request.keys.some((key) => keys.includes(key))) continue;
    if (past.unblockedMs(process, { from: moment, to: request.from }) > sendingMs) continue;
    answered = Math.max(answered, request.to);
  }
  return answered;
};

/** When the call should be over: at its deadline, or with what was on its way for its keys at that moment. */
const dueAt = (past: Past, { asked, aborted }: Call, sendingMs: number): number => {
  const deadline = asked.waitMs === null ? Infinity : past.awakeAt(asked.process, asked.at) + asked.waitMs;
  const others = new Set(asked.keys).size - 1;
  if (aborted !== undefined && aborted < deadline) {
    // Whoever calls its wait off does not wait for an answer; but who has all keys already waits for nothing else.
    return others > 0 ? answeredAt(past, asked, aborted, sendingMs) : aborted;
  }
  let due = answeredAt(past, asked, deadline, sendingMs);
  // Each key is asked for at least once, one after the other; then all get their lease at once.
  let more = others > 0 ? others + 1 : 0;
  // Who stood behind others that ask for a permit, or to read, and whose questions came to nothing, asks once itself.
  if (asked.permits !== undefined || asked.keys.some((key) => modeOf(asked, key) === 'read'))
    more = Math.max(more, 1);
  for (; more > 0; more--) due = answeredAt(past, asked, due, sendingMs);
  return due;
};

/** The same of a use of a semaphore or a latch. Who stood behind others asks once more for itself. */
const useDueAt = (past: Past, { asked, process, from, calledOff }: Use, sendingMs: number): number => {
  const deadline = past.awakeAt(process, from) + (asked.waitMs ?? 0);
  const wanted = { process, keys: [asked.key] };
  const due = answeredAt(past, wanted, Math.min(calledOff ?? Infinity, deadline), sendingMs);
  return answeredAt(past, wanted, due, sendingMs);
};

function* lateUses(past: Past, latenessMs: number, sendingMs: number): Generator<Violation> {
  for (const use of usesOf(past)) {
    const { asked, process, to, from, error } = use;
    const due = useDueAt(past, use, sendingMs);
    const lateMs = past.unblockedMs(process, { from: due, to: Math.min(to, past.end) });
    if (lateMs > latenessMs) {
      const text = `${asked.use} (${process}) at "${asked.key}" returned ${ms(lateMs)} after it had to: waitMs ${asked.waitMs ?? 0}`;
      yield { rule: 'waiting', at: due + latenessMs, text };
    } else if (to === Infinity) {
      yield { rule: 'waiting', at: past.end, text: `${asked.use} (${process}) never returned` };
    } else if (error?.code === 'LOCK_TAKEN' && to - from < (asked.waitMs ?? 0) - latenessMs) {
      const text = `${asked.use} (${process}) gave up after ${ms(to - from)}: waitMs ${asked.waitMs}`;
      yield { rule: 'waiting', at: to, text };
    }
  }
}

/** Nobody waits longer than it said, but for the end of the command in flight; and every call ends. */
export const waiting: Rule = function* (past, { latenessMs, sendingMs }): Generator<Violation> {
  for (const call of past.calls.values()) {
    const { asked, end } = call;
    const due = dueAt(past, call, sendingMs);
    const to = Math.min(end, past.end);
    const lateMs = past.unblockedMs(asked.process, { from: due, to });
    if (lateMs > latenessMs) {
      // With the keys, the report of the violation shows their requests.
      const keys = asked.keys.map((key) => `"${key}"`).join(', ');
      const text = `${asked.call} (${asked.process}) for ${keys} returned ${ms(lateMs)} after it had to: waitMs ${asked.waitMs}`;
      yield { rule: 'waiting', at: due + latenessMs, text };
    } else if (end === Infinity) {
      yield { rule: 'waiting', at: past.end, text: `${asked.call} (${asked.process}) never returned` };
    }
  }
  yield* lateUses(past, latenessMs, sendingMs);
};
