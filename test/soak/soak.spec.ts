import { beforeAll, describe, expect, it } from 'vitest';
import { soak } from './soak.js';
import { verdictOn, type SoakResult } from './verdict.js';

/** A million: npm run test:soak. */
const CYCLES = 3_000;
const TIMEOUT_MS = 180_000;

describe(`after ${CYCLES} locks of all kinds, with all endings`, () => {
  let result: SoakResult;

  beforeAll(async () => {
    result = await soak({ cycles: CYCLES });
  }, TIMEOUT_MS);

  it('everything is where it began: heap, usage, timers, listeners, subscriptions, keys in Redis', () => {
    expect(verdictOn(result).filter(({ isGood }) => !isGood)).toEqual([]);
  });

  it('a heap that had grown by 400 bytes for each of them would be seen', () => {
    const ofEachLook = (400 * CYCLES) / (result.heapBytes.length - 1);
    const heapBytes = result.heapBytes.map((bytes, look) => bytes + look * ofEachLook);
    const leaking = { ...result, heapBytes };
    expect(verdictOn(leaking).filter(({ isGood }) => !isGood)).toMatchObject([{ what: /^heap/ }]);
  });
});
