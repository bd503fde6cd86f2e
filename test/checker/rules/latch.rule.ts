import type { Expectations } from '../expectations.js';
import type { Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { longestCalmMs, lossesOf, usesByKey, type Use } from './uses.js';

/** Everybody who sets the count of a latch here sets the same. */
const countOf = (uses: readonly Use[]): number =>
  uses.find(({ requested }) => requested.what === 'set')?.requested.amount ?? 0;

const downs = (uses: readonly Use[]): Use[] => uses.filter(({ requested }) => requested.what === 'countDown');

/** Somebody went on although not enough had counted down, whatever became of requests without an answer. */
function* openedEarly(uses: readonly Use[], losses: readonly number[]): Generator<Violation> {
  for (const { requested, did, from, to } of uses) {
    if (requested.what !== 'wait' || did !== 'yes' || losses.some((at) => at < to)) continue;
    const isSet = uses.some((use) => use.requested.what === 'set' && use.did === 'yes' && use.to <= from);
    const counted = downs(uses).filter((use) => use.did !== 'no' && use.from <= to).length;
    if (!isSet || counted >= countOf(uses)) continue;
    const text = `${requested.use} went on at "${requested.key}" after ${counted} of ${countOf(uses)} had counted down`;
    yield { rule: 'latch', at: to, text };
  }
}

/** The only one that set a count, when it is known who that was. */
const setterOf = (uses: readonly Use[]): Use | undefined => {
  const setters = uses.filter(({ requested, did }) => requested.what === 'set' && did !== 'no');
  return setters.length === 1 && setters[0]!.did === 'yes' ? setters[0] : undefined;
};

/** Those who have surely counted down by then. */
const surelyDown = (uses: readonly Use[], setter: Use): Use[] =>
  downs(uses)
    .filter((use) => use.did === 'yes' && use.from >= setter.to)
    .sort((a, b) => a.to - b.to);

/** Somebody who looked found a count that cannot be. */
function* miscounted(uses: readonly Use[], setter: Use, losses: readonly number[]): Generator<Violation> {
  const count = countOf(uses);
  for (const { requested, from, to, found } of uses) {
    if (found === undefined || requested.what !== 'look' || from < setter.to || losses.some((at) => at < to))
      continue;
    const max = Math.max(0, count - surelyDown(uses, setter).filter((use) => use.to <= from).length);
    const min = Math.max(0, count - downs(uses).filter((use) => use.did !== 'no' && use.from <= to).length);
    if (found >= min && found <= max) continue;
    const text = `${requested.use} found ${found} left at "${requested.key}" where there were ${min} to ${max}`;
    yield { rule: 'latch', at: to, text };
  }
}

/** Somebody waited although it was open. */
function* leftWaiting(
  past: Past,
  uses: readonly Use[],
  setter: Use,
  losses: readonly number[],
  { promptMs }: Expectations,
): Generator<Violation> {
  const openAt = surelyDown(uses, setter)[countOf(uses) - 1]?.to;
  if (openAt === undefined) return;
  for (const { requested, process, from, to } of uses) {
    if (requested.what !== 'wait' || losses.some((at) => at < to)) continue;
    const calmMs = longestCalmMs(past, process, [{ from: Math.max(from, openAt), to }]);
    if (calmMs.ms <= promptMs) continue;
    const text = `${requested.use} (${process}) waited for ${ms(calmMs.ms)} although "${requested.key}" was open`;
    yield { rule: 'latch', at: calmMs.at + promptMs, text };
  }
}

/** A latch opens when all have counted down, not before, and then for all who wait. */
export const latch: Rule = function* (past, expectations): Generator<Violation> {
  for (const [key, uses] of usesByKey(past, 'latch')) {
    const losses = lossesOf(past, key);
    yield* openedEarly(uses, losses);
    const setter = setterOf(uses);
    if (!setter) continue;
    yield* miscounted(uses, setter, losses);
    yield* leftWaiting(past, uses, setter, losses, expectations);
  }
};
