import type { Call, Past } from '../../checker/past.js';
import { ms } from '../../checker/rules/rule.js';
import { common, lengthOf, type Span } from '../../checker/spans.js';
import type { Violation } from '../../checker/violation.js';
import { SESSION_MS } from '../settings.js';

/** For how long no caller has had a key before a call gives up that waits for it. */
const FREE_MS = 1_500;
/** A busy machine is never calm for as long as that. */
const CALM_PART = 0.7;
/** What a process had that was killed ends with its session, and each leader gives that its time again. */
const AFTER_CRASH_MS = SESSION_MS + 1_000;

/**
 * A call that waits gets a lock that is free. It says nothing of a time in which a process was in trouble, or killed: then
 * the servers may keep what no caller has. A call for several keys may have one of them while it waits for the next, and its
 * caller has none.
 */
export function* waiters(past: Past): Generator<Violation> {
  const processes = [...new Set([...past.calls.values()].map(({ requested }) => requested.process))];
  const isOver = (process: string, at: number): boolean =>
    past.crashedAt(process) < at - AFTER_CRASH_MS &&
    lengthOf(past.calm(process, { from: at - AFTER_CRASH_MS, to: at })) >= AFTER_CRASH_MS;
  const wasCalm = (from: number, to: number): boolean =>
    processes.every(
      (process) =>
        lengthOf(past.calm(process, { from, to })) >= CALM_PART * (to - from) &&
        (past.crashedAt(process) > to || isOver(process, from)),
    );
  for (const { requested, refused, aborted } of gaveUp(past)) {
    const [from, to] = [refused!.at - FREE_MS, refused!.at];
    const [key] = requested.keys;
    const beliefs = past.beliefs.get(key!) ?? [];
    if (aborted !== undefined || requested.at > from || !wasCalm(from, to)) continue;
    const several = [...past.calls.values()].filter(
      ({ requested: { keys } }) => keys.length > 1 && keys.includes(key!),
    );
    const taking = several.map(({ requested: { at }, end }): Span => ({ from: at, to: end }));
    if ([...beliefs, ...taking].some((span) => common(span, { from, to }))) continue;
    const text = `${requested.call} (${requested.process}) waited for "${key}", which no caller had for ${ms(FREE_MS)}`;
    yield { rule: 'waiters', at: to, text };
  }
}

/** Calls for one key that found it taken until the end. */
const gaveUp = (past: Past): Call[] =>
  [...past.calls.values()].filter(
    ({ requested, refused }) => requested.keys.length === 1 && refused?.error?.code === 'LOCK_TAKEN',
  );
