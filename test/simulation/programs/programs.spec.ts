import { describe, expect, it } from 'vitest';
import { digestOf, PROGRAMS, runProgram } from './programs.js';
import { recorded, WANTED } from './recorded.js';

/** All 500 take some 20 s. */
const TIMEOUT_MS = 300_000;

describe('the waiting loop, in 500 programs of the simulations', () => {
  it(
    'serves callers in the same order, at the same times and with the same outcomes as recorded, and asks no more',
    { timeout: TIMEOUT_MS },
    async () => {
      const before = recorded();
      expect([...before.keys()]).toEqual(PROGRAMS);
      const differ: string[] = [];
      let [requests, requestsBefore] = [0, 0];
      for (const name of PROGRAMS) {
        const shown = await runProgram(name);
        const [digest, requestsThen] = before.get(name)!;
        requests += shown.requests;
        requestsBefore += requestsThen;
        if (digestOf(shown) !== digest && !Object.hasOwn(WANTED, name)) differ.push(name);
      }
      expect(
        differ,
        'programs/main.ts --show prints one; compare it with the commit that recorded it',
      ).toEqual([]);
      expect(requests).toBeLessThanOrEqual(requestsBefore);
    },
  );
});
