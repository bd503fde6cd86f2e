import { describe, expect, it } from 'vitest';
import { afterFailure, nextOf, type FailedView, type View } from '../../../lib/core/wait/states.js';

/** A caller that waits, may ask, and has no reason to. */
const ASLEEP: View = {
  ...{ now: 100, deadline: 1_000, retryAt: Infinity },
  ...{ mayAsk: true, isWoken: false, inOutage: false, keepsWaiting: true, isToLook: false },
};
const LATE = { now: 1_000 };

/** A failure for a temporary reason, of a caller that has waited since before. */
const FAILED: FailedView = {
  ...{ isLate: false, getsAnotherTry: false, isPassing: true, keepsWaiting: true, isHarmless: true },
};

/** All combinations of these values. */
const every = <T extends object>(values: { readonly [K in keyof T]: readonly T[K][] }): T[] =>
  Object.entries(values).reduce<T[]>(
    (all, [name, some]) =>
      all.flatMap((one) => (some as unknown[]).map((value) => ({ ...one, [name]: value }))),
    [{} as T],
  );

describe('a waiting caller', () => {
  it.each([
    ['sleeps while nothing happens', {}, 'sleep'],
    ['asks when it was woken', { isWoken: true }, 'ask'],
    ['asks when its retry is due', { retryAt: 100 }, 'ask'],
    ['leaves that to the first, if it may not ask', { isWoken: true, retryAt: 0, mayAsk: false }, 'sleep'],
    ['asks at the end of its wait, also if it may not ask otherwise', { ...LATE, mayAsk: false }, 'ask'],
    ['sleeps while the store fails', { inOutage: true, isWoken: true, retryAt: 0 }, 'sleep'],
    ['looks whether the store works, when it is to', { inOutage: true, isToLook: true }, 'look'],
    ['looks at once, if it came in the outage', { inOutage: true, keepsWaiting: false }, 'look'],
    ['gives up at the end of its wait while the store fails', { inOutage: true, ...LATE }, 'give up'],
    ['does not look after its wait', { inOutage: true, isToLook: true, ...LATE }, 'give up'],
  ] as const)('%s', (_what, change, next) => {
    expect(nextOf({ ...ASLEEP, ...change })).toBe(next);
  });

  it('never sleeps past the end of its wait', () => {
    const views = every<View>({
      ...{ now: [1_000, 1_001], deadline: [1_000], retryAt: [0, Infinity] },
      ...{ mayAsk: [true, false], isWoken: [true, false], inOutage: [true, false] },
      ...{ keepsWaiting: [true, false], isToLook: [true, false] },
    });
    expect(views.map(nextOf)).not.toContain('sleep');
  });
});

describe('after a failure of the store, a caller', () => {
  it.each([
    ['goes on waiting, if it has waited before and the failure is temporary', {}, 'go on'],
    ['gives up at the end of its wait', { isLate: true }, 'give up'],
    ['asks again, if the store asks for that', { getsAnotherTry: true }, 'ask again'],
    ['does not ask again after its wait', { getsAnotherTry: true, isLate: true }, 'give up'],
    ['fails, if the store will not recover', { isPassing: false }, 'fail'],
    ['fails, if it came in the outage', { keepsWaiting: false }, 'fail'],
    ['fails, if its request may have won', { isHarmless: false }, 'fail'],
    ['fails with that also at the end of its wait', { isHarmless: false, isLate: true }, 'fail'],
  ] as const)('%s', (_what, change, next) => {
    expect(afterFailure({ ...FAILED, ...change })).toBe(next);
  });
});
