import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Redisson, RedissonKind } from '../support/redisson/redisson.js';
import { nodeContends, servedTo, Sides, unserved, type Contender } from './sides.js';

const PROCESSES = 8;
const CALLERS = 16;
const WORK_MS = 2;
const FOR_MS = 30_000;
const MIN_SERVED = 5;

describe('beside 8 busy Node processes', () => {
  let sides: Sides;
  let java: Redisson;
  let processes: Contender[];

  beforeAll(async () => {
    sides = await Sides.start();
    java = await sides.java();
    processes = await Promise.all(Array.from({ length: PROCESSES }, () => sides.node()));
  });
  afterAll(() => sides[Symbol.asyncDispose]());

  const pollers: [string, { kind: RedissonKind; pollEveryMs?: number }][] = [
    ['spin lock', { kind: 'spin' }],
    ['tryLock() asked every 10 ms', { kind: 'lock', pollEveryMs: 10 }],
  ];
  it.each(pollers)(
    `a Java %s is served at least ${MIN_SERVED} times in 30 s`,
    async (name, how) => {
      const contest = { callers: CALLERS, workMs: WORK_MS, forMs: FOR_MS };
      const [ours, theirs] = await Promise.all([
        nodeContends(processes, { key: name, ...contest }),
        java.send('contend', { name, threads: 1, workMs: WORK_MS, forMs: FOR_MS, ...how }),
      ]);
      console.log(`${name}: Java ${servedTo(theirs)}, Node ${servedTo(ours)}, none for ${unserved(ours)}`);
      expect(servedTo(theirs)).toBeGreaterThanOrEqual(MIN_SERVED);
      expect(unserved(ours)).toBe(0);
    },
    3 * FOR_MS,
  );
});
