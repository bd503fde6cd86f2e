import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { newKey, PostgresLab, type OpenPostgresLocks } from '../../support/postgres/postgres-lab.js';
import { TestWorker } from '../../support/worker.js';

const WAIT = { waitMs: 20_000 };
const TURNS = 120;
/** For how long a key is left to the process whose turn it is. */
const TURN_MS = 250;
/** What a busy machine may add. */
const SLACK_MS = 400;

let lab: PostgresLab;
beforeAll(async () => {
  lab = await PostgresLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

const work = (): Promise<unknown> => lab.query('SELECT pg_sleep(0.002)');

/** Processes with some callers each that acquire a key again and again. A turn is a series of locks of one process. */
const hotKey = async (processes: readonly (readonly [OpenPostgresLocks, callers: number])[]) => {
  const key = newKey('hot');
  const shares = processes.map(() => 0);
  const gapsMs: number[] = [];
  let [releasedAt, last, series, longest] = [0, 0, 0, 0];
  const call = async ({ locks }: OpenPostgresLocks, process: number): Promise<void> => {
    while (gapsMs.length < TURNS) {
      await locks.withLock(key, WAIT, async () => {
        if (last !== process) gapsMs.push(performance.now() - releasedAt);
        series = last === process ? series + 1 : 1;
        longest = Math.max(longest, series);
        last = process;
        shares[process]! += 1;
        await work();
        releasedAt = performance.now();
      });
    }
  };
  await Promise.all(
    processes.flatMap(([opened, callers], i) => Array.from({ length: callers }, () => call(opened, i))),
  );
  const sum = shares.reduce((a, b) => a + b);
  const jain = sum ** 2 / (shares.length * shares.reduce((a, b) => a + b ** 2, 0));
  return { jain, longest, longestGapMs: Math.max(...gapsMs.slice(1)) };
};

describe.each([{ pooled: false }, { pooled: true }])('a hot key (pooled: $pooled)', ({ pooled }) => {
  it.each([2, 4])('of %i processes is shared equally, and no wake-up is lost', async (count) => {
    const found = await hotKey(Array.from({ length: count }, () => [lab.open({}, { pooled }), 1] as const));
    expect(found.jain).toBeGreaterThan(0.95);
    expect(found.longestGapMs).toBeLessThan(TURN_MS + SLACK_MS);
  });

  it('is passed on after each batch of a process with many callers', async () => {
    const { longest, longestGapMs } = await hotKey([
      [lab.open({}, { pooled }), 5],
      [lab.open({}, { pooled }), 1],
    ]);
    expect(longest).toBeLessThanOrEqual(10);
    expect(longestGapMs).toBeLessThan(TURN_MS + SLACK_MS);
  });

  it('is not kept by a process that asks always without waiting', async () => {
    const [greedy, waiter] = [lab.open({}, { pooled }), lab.open({}, { pooled })];
    const key = newKey();
    let [stopped, times] = [false, 0];
    const ask = async (): Promise<void> => {
      while (!stopped) if ((await greedy.locks.tryWithLock(key, work)).ran) times += 1;
    };
    const asking = [ask(), ask()];
    for (let turn = 0; turn < 20; turn += 1) {
      await until(() => times > turn, { what: 'the greedy process has had the lock' });
      const startedAt = performance.now();
      await waiter.locks.withLock(key, WAIT, () => undefined);
      expect(performance.now() - startedAt).toBeLessThan(TURN_MS + SLACK_MS);
    }
    stopped = true;
    await Promise.all(asking);
  });
});

describe('a waiter', () => {
  it('leaves the wait queue when its time is over, and when it is aborted at any moment', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const { key } = await holder.locks.acquire(newKey());
    const timedOut = waiter.locks.acquire(key, { waitMs: 300 }).catch((error: unknown) => error);
    await lab.waiting(key);
    expect(await timedOut).toMatchObject({ code: 'LOCK_TAKEN' });
    await lab.waiting(key, 0);
    for (let round = 0; round < 20; round += 1) {
      const abort = new AbortController();
      const options = { ...WAIT, signal: abort.signal };
      const waiting = waiter.locks.acquire(key, options).catch((error: unknown) => error);
      for (let i = 0; i < round % 5; i += 1) await holder.locks.ping();
      abort.abort();
      expect(await waiting).toMatchObject({ code: 'LOCK_ABORTED' });
      // The request that was under way has its reply before this one.
      await waiter.locks.inspect(key);
      await lab.waiting(key, 0);
    }
  });

  it('that is killed delays the next one only for the time of its turn', async () => {
    const [holder, next] = [lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey());
    const args = [lab.server.uri, lease.key];
    await using worker = TestWorker.start(new URL('./workers/waiter.worker.ts', import.meta.url), { args });
    await lab.waiting(lease.key);
    const waiting = next.locks.acquire(lease.key, WAIT);
    await lab.waiting(lease.key, 2);
    await worker.kill('SIGKILL');
    const releasedAt = performance.now();
    await lease.release();
    await (await waiting).release();
    const delayMs = performance.now() - releasedAt;
    expect(delayMs).toBeGreaterThan(TURN_MS - 50);
    expect(delayMs).toBeLessThan(TURN_MS + SLACK_MS);
  });
});
