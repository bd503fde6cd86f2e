import { usesOf } from '../../checker/rules/uses.js';
import type { Past } from '../../checker/past.js';
import { lengthOf } from '../../checker/spans.js';
import type { Violation } from '../../checker/violation.js';

/** How long before a failure something may have happened that it comes of, in ms. */
const BUSY_MS = 500;
/** On a busy machine there is no time in which nothing ever stands still: so much of it is enough. */
const CALM_PART = 0.7;

/** Where nothing is wrong nobody hears of a store that fails: a slot that moves costs no lock. */
export function* availability(past: Past): Generator<Violation> {
  const isCalm = (process: string, from: number, to: number): boolean =>
    lengthOf(past.calm(process, { from: from - BUSY_MS, to })) >= CALM_PART * (to - from + BUSY_MS);
  for (const { requested, refused } of past.calls.values()) {
    if (refused?.error?.code !== 'LOCK_STORE_FAILED') continue;
    if (!isCalm(requested.process, requested.at, refused.at)) continue;
    const text = `${requested.call} failed while nothing was wrong: ${refused.error.message}`;
    yield { rule: 'availability', at: refused.at, text };
  }
  for (const { requested, process, from, to, error } of usesOf(past)) {
    if (error?.code !== 'LOCK_STORE_FAILED' || !isCalm(process, from, to)) continue;
    yield {
      rule: 'availability',
      at: to,
      text: `${requested.use} failed while nothing was wrong: ${error.message}`,
    };
  }
}
