import { describe, expect, it } from 'vitest';
import { every, pause } from '../../../lib/stores/redis/connection/timers.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

describe('an interval', () => {
  it('calls its action again and again until it is ended', async () => {
    const runtime = new VirtualRuntime();
    const calledAt: number[] = [];
    const end = every(runtime, 10, () => void calledAt.push(runtime.now()));
    await runtime.pass(35);
    expect(calledAt).toEqual([1_010, 1_020, 1_030]);
    end();
    await runtime.pass(100);
    expect(calledAt).toHaveLength(3);
    expect(runtime.due).toEqual([]);
  });

  it('can be ended by its action', async () => {
    const runtime = new VirtualRuntime();
    let calls = 0;
    const end = every(runtime, 10, () => {
      calls += 1;
      if (calls === 2) end();
    });
    await runtime.pass(100);
    expect(calls).toBe(2);
    expect(runtime.due).toEqual([]);
  });

  it('goes on when its action throws', async () => {
    const runtime = new VirtualRuntime();
    const end = every(runtime, 10, () => {
      throw new Error('of the action');
    });
    await expect(runtime.pass(10)).rejects.toThrow('of the action');
    expect(runtime.due).toEqual([1_020]);
    end();
  });
});

describe('a timer', () => {
  it('is in the background for an interval, and for a pause that says so', () => {
    const timers: unknown[] = [];
    const runtime = Object.assign(new VirtualRuntime(), {
      setTimer: (_action: () => void, ms: number, background?: boolean) => timers.push([ms, background]),
    });
    every(runtime, 10, () => undefined);
    void pause(runtime, 20, true);
    void pause(runtime, 30);
    expect(timers).toEqual([
      [10, true],
      [20, true],
      [30, false],
    ]);
  });
});
