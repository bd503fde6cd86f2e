import { MIN_UNSENT_MS } from '../../../lib/core/wait/wait.js';
import { modeOf, type Call, type Past, type Request } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { usesOf, type Use } from './uses.js';

type Asking = Pick<Call['requested'], 'process' | 'keys'>;

/** What is on its way for one of the keys at this moment. */
const underWay = (past: Past, { process, keys }: Asking, moment: number, sendingMs: number): Request[] =>
  past.requests.filter(
    (request) =>
      request.process === process &&
      request.to >= moment &&
      request.keys.some((key) => keys.includes(key)) &&
      past.unblockedMs(process, { from: moment, to: request.from }) <= sendingMs,
  );

/** When what is on its way for one of the keys at this moment will be answered. */
const repliedAt = (past: Past, asking: Asking, moment: number, sendingMs: number): number =>
  Math.max(moment, ...underWay(past, asking, moment, sendingMs).map(({ to }) => to));

/** When the call should be over: at its deadline, or with what was on its way for its keys at that moment. */
const dueAt = (past: Past, { requested, aborted }: Call, sendingMs: number): number => {
  const from = past.awakeAt(requested.process, requested.at);
  const deadline = requested.waitMs === null ? Infinity : from + requested.waitMs;
  const others = new Set(requested.keys).size - 1;
  if (aborted !== undefined && aborted < deadline) {
    // A caller that calls its wait off does not wait for an answer. With all its keys, it waits for nothing else.
    return others > 0 ? repliedAt(past, requested, aborted, sendingMs) : aborted;
  }
  let due = repliedAt(past, requested, deadline, sendingMs);
  // A caller behind a question that could not be sent has a moment for its own.
  if (underWay(past, requested, deadline, sendingMs).some(({ outcome }) => outcome === 'not-executed'))
    due = Math.max(due, repliedAt(past, requested, from + MIN_UNSENT_MS, sendingMs));
  // Each key is asked for at least once, one after the other; then all get their lease at once.
  let more = others > 0 ? others + 1 : 0;
  // A caller behind others that ask for a permit, or to read, asks once itself if their questions came to nothing.
  if (requested.permits !== undefined || requested.keys.some((key) => modeOf(requested, key) === 'read'))
    more = Math.max(more, 1);
  for (; more > 0; more--) due = repliedAt(past, requested, due, sendingMs);
  return due;
};

/** The same of a use of a semaphore or a latch. A caller behind others asks once more for itself. */
const useDueAt = (past: Past, { requested, process, from, calledOff }: Use, sendingMs: number): number => {
  const deadline = past.awakeAt(process, from) + (requested.waitMs ?? 0);
  const wanted: Asking = { process, keys: [requested.key] };
  const due = repliedAt(past, wanted, Math.min(calledOff ?? Infinity, deadline), sendingMs);
  return repliedAt(past, wanted, due, sendingMs);
};

function* lateUses(past: Past, latenessMs: number, sendingMs: number): Generator<Violation> {
  for (const use of usesOf(past)) {
    const { requested, process, to, from, error } = use;
    const due = useDueAt(past, use, sendingMs);
    const lateMs = past.unblockedMs(process, { from: due, to: Math.min(to, past.end) });
    if (lateMs > latenessMs) {
      const text = `${requested.use} (${process}) at "${requested.key}" returned ${ms(lateMs)} after it had to: waitMs ${requested.waitMs ?? 0}`;
      yield { rule: 'waiting', at: due + latenessMs, text };
    } else if (to === Infinity) {
      yield { rule: 'waiting', at: past.end, text: `${requested.use} (${process}) never returned` };
    } else if (error?.code === 'LOCK_TAKEN' && to - from < (requested.waitMs ?? 0) - latenessMs) {
      const text = `${requested.use} (${process}) gave up after ${ms(to - from)}: waitMs ${requested.waitMs}`;
      yield { rule: 'waiting', at: to, text };
    }
  }
}

/** No caller waits longer than it said, but for the end of the command in flight. Every call ends. */
export const waiting: Rule = function* (past, { latenessMs, sendingMs }): Generator<Violation> {
  for (const call of past.calls.values()) {
    const { requested, end } = call;
    const due = dueAt(past, call, sendingMs);
    const to = Math.min(end, past.end);
    const lateMs = past.unblockedMs(requested.process, { from: due, to });
    if (lateMs > latenessMs) {
      // With the keys, the report of the violation shows their requests.
      const keys = requested.keys.map((key) => `"${key}"`).join(', ');
      const text = `${requested.call} (${requested.process}) for ${keys} returned ${ms(lateMs)} after it had to: waitMs ${requested.waitMs}`;
      yield { rule: 'waiting', at: due + latenessMs, text };
    } else if (end === Infinity) {
      yield {
        rule: 'waiting',
        at: past.end,
        text: `${requested.call} (${requested.process}) never returned`,
      };
    }
  }
  yield* lateUses(past, latenessMs, sendingMs);
};
