import type { Expectations } from '../expectations.js';
import type { Past } from '../past.js';
import type { Span } from '../spans.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { longestCalmMs, lossesOf, usesByKey, type Use } from './uses.js';

const makesMore = ({ requested: { what } }: Use): boolean => what === 'set' || what === 'add';

interface Change {
  readonly at: number;
  readonly by: number;
}

/** What is certain or possible of the number of free permits: it changes by so much at these moments. */
const inOrder = (changes: readonly Change[]): Change[] =>
  [...changes].sort((a, b) => a.at - b.at || b.by - a.by);

/** More permits were taken than there can have been, whatever became of requests without an answer. */
function* tooMany(uses: readonly Use[], key: string, losses: readonly number[]): Generator<Violation> {
  const supply = uses.filter((use) => makesMore(use) && use.did !== 'no');
  const changes = inOrder([
    ...supply.map(({ from: at, requested: { amount: by } }) => ({ at, by })),
    ...uses
      .filter(
        ({ requested, did, from, to }) =>
          requested.what === 'take' && did === 'yes' && !losses.some((at) => from < at && at <= to),
      )
      .map(({ to: at, requested: { amount } }) => ({ at, by: -amount })),
  ]);
  let max = 0;
  let peak = 0;
  const lost = [...losses];
  for (const { at, by } of changes) {
    while (lost.length > 0 && lost[0]! < at) {
      const moment = lost.shift()!;
      // What it has then, it had once; and what was under way may come on top.
      const late = supply.filter((use) => use.from <= moment && (use.did === 'maybe' || use.to > moment));
      max = peak + late.reduce((sum, { requested }) => sum + requested.amount, 0);
      peak = max;
    }
    max += by;
    peak = Math.max(peak, max);
    if (max >= 0) continue;
    yield { rule: 'semaphore', at, text: `${-max} permits of "${key}" too many were taken` };
    return;
  }
}

/** Somebody who looked found permits that came from nowhere, or missed some. */
function* miscounted(uses: readonly Use[], key: string, losses: readonly number[]): Generator<Violation> {
  for (const { requested, from, to, found } of uses) {
    if (found === undefined || requested.what !== 'look' || losses.some((at) => at < to)) continue;
    let min = 0;
    let max = 0;
    for (const use of uses) {
      const { amount, what } = use.requested;
      if (what === 'look' || use.did === 'no') continue;
      const surely = use.did === 'yes' && use.to <= from;
      const possibly = use.from <= to;
      if (makesMore(use)) {
        if (surely) min += amount;
        if (possibly) max += amount;
      } else {
        if (possibly) min -= amount;
        if (surely) max -= amount;
      }
    }
    if (found >= min && found <= max) continue;
    const text = `${requested.use} found ${found} permits of "${key}" where there were ${min} to ${max}`;
    yield { rule: 'semaphore', at: to, text };
  }
}

/** When the caller could surely have had its permits: also when all who came before had taken theirs. */
const freeFor = (waiter: Use, uses: readonly Use[]): Span[] => {
  const changes: Change[] = [];
  for (const use of uses) {
    const { amount, what } = use.requested;
    if (use === waiter || what === 'look') continue;
    if (makesMore(use)) {
      if (use.did === 'yes') changes.push({ at: use.to, by: amount });
    } else if (use.did !== 'no') {
      changes.push({ at: use.from, by: -amount });
    } else if (use.process === waiter.process && use.from <= waiter.from) {
      // It stands before it, and may keep it waiting.
      changes.push({ at: use.from, by: -amount }, { at: use.to, by: amount });
    }
  }
  const spans: Span[] = [];
  let free = 0;
  let since: number | undefined;
  const end = (to: number): void => {
    if (since !== undefined && to > Math.max(since, waiter.from))
      spans.push({ from: Math.max(since, waiter.from), to: Math.min(to, waiter.to) });
    since = undefined;
  };
  for (const { at, by } of [...changes].sort((a, b) => a.at - b.at || a.by - b.by)) {
    free += by;
    if (free >= waiter.requested.amount) since ??= at;
    else end(at);
  }
  end(waiter.to);
  return spans.filter(({ from, to }) => from < to);
};

/** Somebody waited although permits were free. */
function* leftWaiting(
  past: Past,
  uses: readonly Use[],
  losses: readonly number[],
  { promptMs }: Expectations,
): Generator<Violation> {
  for (const waiter of uses) {
    const { requested, process, from, to } = waiter;
    if (requested.what !== 'take' || to - from <= promptMs || losses.some((at) => at < to)) continue;
    const calmMs = longestCalmMs(past, process, freeFor(waiter, uses));
    if (calmMs.ms <= promptMs) continue;
    const text = `${requested.use} (${process}) waited for ${ms(calmMs.ms)} although permits of "${requested.key}" were free`;
    yield { rule: 'semaphore', at: calmMs.at + promptMs, text };
  }
}

/** No permit comes from nowhere or gets lost, and nobody waits for one that is free. */
export const semaphore: Rule = function* (past, expectations): Generator<Violation> {
  for (const [key, uses] of usesByKey(past, 'semaphore')) {
    const losses = lossesOf(past, key);
    yield* tooMany(uses, key, losses);
    yield* miscounted(uses, key, losses);
    yield* leftWaiting(past, uses, losses, expectations);
  }
};
