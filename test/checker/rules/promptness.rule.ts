import type { Call, Past } from '../past.js';
import { joined, lengthOf, without, type Span } from '../spans.js';
import type { Violation } from '../violation.js';
import { heldSpans } from './held-spans.js';
import { ms, type Rule } from './rule.js';

/**
 * When the caller stood before the store or behind others of its process. Of several keys nobody can tell from
 * outside for which one it waits, and one that asks only once does not wait.
 */
const waitOf = ({ asked, aborted, end }: Call, past: Past): Span | undefined => {
  if (asked.keys.length !== 1 || asked.waitMs === 0) return undefined;
  const deadline = asked.waitMs === null ? Infinity : asked.at + asked.waitMs;
  return { from: asked.at, to: Math.min(aborted ?? Infinity, end, deadline, past.end) };
};

/** After early work a key is kept from the callers of this process too, whatever became of the hold. */
const keptSpans = (past: Past): Map<string, Span[]> => {
  const kept = new Map<string, Span[]>();
  for (const { asked, granted } of past.calls.values()) {
    if (!granted || !asked.holdAtLeastMs) continue;
    for (const key of asked.keys) {
      const name = `${asked.process} ${key}`;
      kept.set(name, [...(kept.get(name) ?? []), { from: asked.at, to: granted.at + asked.holdAtLeastMs }]);
    }
  }
  return kept;
};

/**
 * A free key is taken by those who wait for it, at once and not because a time is over. Who has asked and has no
 * answer yet does not wait for the key, but for the store.
 */
export const promptness: Rule = function* (past, { promptMs }): Generator<Violation> {
  const held = heldSpans(past);
  if (!held) return;
  const kept = keptSpans(past);
  for (const call of past.calls.values()) {
    const wait = waitOf(call, past);
    if (!wait || wait.to - wait.from <= promptMs) continue;
    const { process, call: name } = call.asked;
    const key = call.asked.keys[0]!;
    const idleIn = (free: Span): Span[] =>
      past
        .calm(process, free)
        .flatMap((calm) => past.protectedParts(key, calm))
        .flatMap((calm) => without(calm, joined(kept.get(`${process} ${key}`) ?? [])))
        .flatMap((calm) => without(calm, past.askedFor(process, [key])));
    // On a busy machine every moment is disturbed, but not for ever: what counts is how much time there was in all.
    for (const free of without(wait, held.get(key) ?? [])) {
      const idleMs = lengthOf(idleIn(free));
      if (idleMs <= promptMs) continue;
      yield {
        rule: 'promptness',
        at: free.from + promptMs,
        text: `"${key}" was free for ${ms(idleMs)} while ${name} (${process}) waited for it`,
      };
      break;
    }
  }
};
