import type { Call, Past } from '../../checker/past.js';
import { ms } from '../../checker/rules/rule.js';
import { lengthOf, type Span } from '../../checker/spans.js';
import type { Violation } from '../../checker/violation.js';
import { isProbe } from '../workload/random-task.js';

/** When nothing is wrong: before the faults, and once they are over for as long as recovery may take. */
export interface Calm {
  readonly before: Span;
  readonly after: Span;
}

/** How much slower it may be afterwards: what is left is the noise of a machine that does other things as well. */
const SLOWER = 3;
const NOISE_MS = 20;
/** Fewer served probes than this tell nothing. */
const ENOUGH = 5;
/** In so much calm time there are many more, if they are served at all. */
const ENOUGH_MS = 400;

/** How long before a call something may have happened that it fails of. */
const BUSY_MS = 500;

const isCalm = (past: Past, process: string, span: Span): boolean =>
  lengthOf(past.calm(process, span)) === span.to - span.from;

const begunIn = (past: Past, { from, to }: Span): Call[] =>
  [...past.calls.values()].filter(({ requested }) => requested.at >= from && requested.at < to);

/** How long free locks took, in the middle, while neither the machine nor Redis was too busy. */
const medianMs = (past: Past, calls: readonly Call[]): number | undefined => {
  const times = calls
    .filter(({ requested, granted }) => granted && isProbe(requested.keys[0]!))
    .filter(({ requested, end }) => isCalm(past, requested.process, { from: requested.at, to: end }))
    .map(({ requested, end }) => end - requested.at)
    .sort((a, b) => a - b);
  return times.length < ENOUGH ? undefined : times[Math.floor(times.length / 2)];
};

/** After the faults all is as it was: nobody hears of a store that fails, and locks are as quick as before. */
export function* recovery(past: Past, { before, after }: Calm): Generator<Violation> {
  const calls = begunIn(past, after);
  for (const { requested, refused } of calls) {
    if (refused?.error?.code !== 'LOCK_STORE_FAILED') continue;
    // On a machine that is too busy, commands time out without any fault.
    if (!isCalm(past, requested.process, { from: requested.at - BUSY_MS, to: refused.at })) continue;
    const text = `${requested.call} still failed ${ms(requested.at - after.from)} after all had to work again: ${refused.error.message}`;
    yield { rule: 'recovery', at: refused.at, text };
  }
  const was = medianMs(past, begunIn(past, before));
  const is = medianMs(past, calls);
  if (was === undefined) return;
  if (is === undefined) {
    const processes = new Set(calls.map(({ requested }) => requested.process));
    const calmMs = [...processes].map((process) => lengthOf(past.calm(process, after)));
    // The machine itself may have stood still.
    if (calmMs.length > 0 && calmMs.every((ms) => ms < ENOUGH_MS)) return;
    yield { rule: 'recovery', at: after.to, text: 'free locks are not given out any more' };
  } else if (is > SLOWER * was + NOISE_MS) {
    yield {
      rule: 'recovery',
      at: after.to,
      text: `a free lock took ${ms(was)} before the faults and ${ms(is)} after`,
    };
  }
}
