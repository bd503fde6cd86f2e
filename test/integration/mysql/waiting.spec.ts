import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Connection } from 'mysql2/promise';
import { until } from '../../support/async.js';
import { MysqlLab, newKey } from '../../support/mysql/mysql-lab.js';
import { greedyBeforeWaiter, hotKey, NOT_WOKEN_MS } from '../../support/stores/hot-key.js';
import { TestWorker } from '../../support/worker.js';

const WAIT = { waitMs: 20_000 };
/** For how long a key is left to the process whose turn it is. */
const TURN_MS = 250;

let lab: MysqlLab;
let admin: Connection;
beforeAll(async () => {
  lab = await MysqlLab.start();
  admin = await lab.server.adminConnection();
  return async () => {
    admin.destroy();
    await lab[Symbol.asyncDispose]();
  };
});
afterEach(() => lab.reset());

const work = (): Promise<unknown> => admin.query('DO SLEEP(0.002)');

describe.each([{ pooled: false }, { pooled: true }])(
  'a hot key of two processes (pooled: $pooled)',
  ({ pooled }) => {
    it('is shared equally, and no wake-up is lost', async () => {
      const [one, two] = [lab.open({}, { pooled }), lab.open({}, { pooled })];
      const found = await hotKey(
        newKey('hot'),
        [
          { locks: one.locks, callers: 1 },
          { locks: two.locks, callers: 1 },
        ],
        work,
      );
      expect(found.jain).toBeGreaterThan(0.95);
      expect(found.longestGapMs).toBeLessThan(NOT_WOKEN_MS);
      await lab.nothingLeft(one, two);
    });

    it('is passed on after each batch of a process with many callers', async () => {
      const [one, two] = [lab.open({}, { pooled }), lab.open({}, { pooled })];
      const { perTurn, longestGapMs } = await hotKey(
        newKey('hot'),
        [
          { locks: one.locks, callers: 5 },
          { locks: two.locks, callers: 1 },
        ],
        work,
      );
      // Of one process five, and of the other one.
      expect(perTurn).toBeLessThan(5);
      expect(longestGapMs).toBeLessThan(NOT_WOKEN_MS);
      await lab.nothingLeft(one, two);
    });

    it('is not kept by a process that asks always without waiting', async () => {
      const [greedy, waiter] = [lab.open({}, { pooled }), lab.open({}, { pooled })];
      const before = await greedyBeforeWaiter(newKey(), greedy.locks, waiter.locks, work);
      // A waiter in the queue lets its two callers in once each; some more when the machine stands still for a turn.
      expect(before).toBeLessThan(100);
    });
  },
);

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
      const waiting = waiter.locks
        .acquire(key, { ...WAIT, signal: abort.signal })
        .catch((error: unknown) => error);
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
    expect(delayMs).toBeLessThan(NOT_WOKEN_MS);
  });

  it('acquires the key while all bells are lost, and bells come back', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const parked = () => lab.underWay('SELECT IF((SELECT COUNT%GET_LOCK%');
    /** Passes the key to the other service once a waiter hears the bell of the holder. */
    const passOn = async (isHeard: () => Promise<unknown>, fault = async () => undefined as void) => {
      for (const [holder, waiter] of [
        [one, two],
        [two, one],
      ] as const) {
        const lease = await holder.locks.acquire(key, WAIT);
        const waiting = waiter.locks.acquire(key, WAIT);
        await isHeard();
        await fault();
        const releasedAt = performance.now();
        await lease.release();
        await (await waiting).release();
        expect(performance.now() - releasedAt).toBeLessThan(NOT_WOKEN_MS);
      }
    };
    // A process keeps its bell from the first release on that another one waited for.
    await passOn(() => lab.waiting(key));
    const isHeard = () =>
      until(async () => (await parked()).length > 0, { what: 'a waiter is parked at a bell' });
    await passOn(isHeard, async () => {
      const bells = await lab.query(
        "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE USER = 'app' AND (STATE = 'User lock' OR INFO LIKE '%GET_LOCK%')",
      );
      for (const { id } of bells) await lab.query(`KILL CONNECTION ${id}`).catch(() => undefined);
      expect(bells.length).toBeGreaterThan(0);
    });
    await passOn(isHeard);
    await lab.nothingLeft(one, two);
  });
});
