import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SuspendAwareClock, systemRuntime, unbound } from '../../../lib/core/util/runtime.js';
import { deferred, within } from '../../support/async.js';

describe('the clock', () => {
  let monotonic: number;
  let uptime: number;
  let uptimeReads: number;
  let clock: SuspendAwareClock;

  beforeEach(() => {
    [monotonic, uptime, uptimeReads] = [5_000, 900_000, 0];
    clock = new SuspendAwareClock(
      () => monotonic,
      () => {
        uptimeReads += 1;
        return uptime;
      },
    );
  });

  /** The machine is awake. */
  const run = (ms: number): void => {
    monotonic += ms;
    uptime += ms;
  };

  /** The machine sleeps: only its uptime goes on. */
  const sleep = (ms: number): void => {
    uptime += ms;
  };

  it('is the monotonic clock while the machine is awake', () => {
    for (let i = 0; i < 100; i += 1) {
      expect(clock.now()).toBe(monotonic);
      run(777);
    }
  });

  it('counts the time the machine slept, from at most a second after it woke', () => {
    expect(clock.now()).toBe(5_000);
    sleep(60_000);
    run(1_000);
    expect(clock.now()).toBe(66_000);
  });

  it('counts every sleep once', () => {
    for (const expected of [36_000, 67_000, 98_000]) {
      sleep(30_000);
      run(1_000);
      expect(clock.now()).toBe(expected);
      run(0);
      expect(clock.now()).toBe(expected);
    }
  });

  it('takes the coarse steps of the uptime for no sleep', () => {
    for (let i = 0; i < 50; i += 1) {
      monotonic += 1_000;
      uptime = 900_000 + Math.floor(monotonic / 1_000) * 1_000 - 5_000;
      expect(clock.now()).toBe(monotonic);
    }
  });

  it('never steps back, whatever the uptime says', () => {
    let last = clock.now();
    for (const uptimeStep of [60_000, -60_000, 0, 3_000, -90_000, 120_000, 0]) {
      uptime += uptimeStep;
      run(1_500);
      const now = clock.now();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });

  it('sleeps of less than a second add up', () => {
    clock.now();
    for (let i = 0; i < 20; i += 1) {
      sleep(600);
      run(1_000);
      clock.now();
    }
    run(1_000);
    expect(clock.now() - monotonic).toBeGreaterThan(10_000);
  });

  it('asks for the uptime at most once a second, however often it is read', () => {
    clock.now();
    uptimeReads = 0;
    for (let i = 0; i < 10_000; i += 1) {
      run(0.5);
      clock.now();
    }
    expect(uptimeReads).toBeLessThanOrEqual(5);
  });
});

describe('timers and ids', () => {
  const runtime = systemRuntime();

  it('fire, can be cleared, and take a time that is over as "now"', async () => {
    const fired: string[] = [];
    const done = deferred();
    runtime.clearTimer(runtime.setTimer(() => fired.push('cleared'), 1));
    runtime.setTimer(() => fired.push('past'), -1_000);
    runtime.setTimer(done.resolve, 5);
    await within(5_000, done.promise);
    expect(fired).toEqual(['past']);
  });

  it('longer than Node can count do not fire at once', async () => {
    let fired = false;
    const timers = [2 ** 31, 1e15, Infinity].map((ms) => runtime.setTimer(() => (fired = true), ms));
    const done = deferred();
    runtime.setTimer(done.resolve, 20);
    await within(5_000, done.promise);
    expect(fired).toBe(false);
    for (const timer of timers) runtime.clearTimer(timer);
  });

  it('run outside any context, so that they keep no request of a caller alive', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen = deferred<string | undefined>();
    requests.run('a request', () => runtime.setTimer(() => seen.resolve(requests.getStore()), 1));
    expect(await within(5_000, seen.promise)).toBeUndefined();
    expect(requests.run('a request', () => unbound(() => requests.getStore()))).toBeUndefined();
    await turn();
  });

  it('are unique, the ids', () => {
    expect(new Set(Array.from({ length: 1_000 }, () => runtime.newId())).size).toBe(1_000);
  });
});

describe('a timer for longer than Node can wait', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('comes when its time is over, not before, and can be cleared at any time', () => {
    vi.useFakeTimers();
    const { setTimer, clearTimer } = systemRuntime({ now: () => 0 });
    const [MONTH_MS, DAY_MS] = [30 * 24 * 3_600_000, 24 * 3_600_000];
    const fired: string[] = [];
    setTimer(() => fired.push('kept'), 3 * MONTH_MS);
    const cleared = setTimer(() => fired.push('cleared'), 3 * MONTH_MS, true);
    vi.advanceTimersByTime(3 * MONTH_MS - DAY_MS);
    expect(fired).toEqual([]);
    clearTimer(cleared);
    vi.advanceTimersByTime(DAY_MS);
    expect(fired).toEqual(['kept']);
    expect(vi.getTimerCount()).toBe(0);
  });
});
