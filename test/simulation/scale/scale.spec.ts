import { beforeAll, describe, expect, it } from 'vitest';
import { closedLoop, type LoopResult } from './closed-loop.js';
import { Crowd } from './crowd.js';

const CALLERS = 10;

const loop = (processes: number, warmUpMs: number, measuredMs: number): Promise<LoopResult> =>
  Crowd.with(1, (crowd) =>
    closedLoop(crowd, { kind: 'exclusive', processes, callers: CALLERS, warmUpMs, measuredMs }),
  );

describe('the cost of an exclusive lock in a crowd', () => {
  let few: LoopResult;
  let many: LoopResult;
  beforeAll(async () => {
    few = await loop(2, 500, 1_500);
    many = await loop(20, 1_500, 4_000);
  });

  it('excludes', () => {
    expect([few.violations, many.violations]).toEqual([0, 0]);
    expect(few.locks).toBeGreaterThan(500);
  });

  it('is shared out evenly between processes, and no caller is left out', () => {
    expect(few.jain).toBeGreaterThanOrEqual(0.95);
    expect(many.jain).toBeGreaterThanOrEqual(0.95);
    expect(many.unserved).toBe(0);
  });

  it('does not grow with the number of waiting processes', () => {
    expect(many.locksPerSecond).toBeGreaterThan(few.locksPerSecond * 0.8);
    // Two requests and two messages for each hand-off batch of about 23 locks.
    expect(few.perLock.requests).toBeLessThan(0.1);
    expect(few.perLock.messages).toBeLessThan(0.05);
    // And of each waiting process, once a second, a refresh, and a retry after the window for clients that poll.
    expect(many.perLock.requests).toBeLessThan(0.22);
    expect(many.perLock.messages).toBeLessThan(0.11);
    expect(many.perLock.commands).toBeLessThan(5);
    expect(many.perLock.entries).toBeLessThan(1);
  });

  it('has one entry for each waiting process in the queue', () => {
    expect(many.queueBytes / 20).toBeLessThan(200);
  });
});
