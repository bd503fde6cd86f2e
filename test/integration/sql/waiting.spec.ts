import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { MysqlLab } from '../../support/mysql/mysql-lab.js';
import { PostgresLab } from '../../support/postgres/postgres-lab.js';
import { newKey, type SqlLab } from '../../support/sql/sql-lab.js';
import { greedyBeforeWaiter, hotKey, NOT_WOKEN_MS } from '../../support/stores/hot-key.js';
import { TestWorker } from '../../support/worker.js';

const WAIT = { waitMs: 20_000 };
/** For how long a key is left to the process whose turn it is. */
const TURN_MS = 250;

interface Database {
  readonly name: string;
  start(): Promise<SqlLab>;
  /** Statement of the work under a lock. */
  readonly pause: string;
  /** Numbers of processes that share a hot key. */
  readonly counts: readonly number[];
}

const DATABASES: readonly Database[] = [
  { name: 'MySQL', start: () => MysqlLab.start(), pause: 'DO SLEEP(0.002)', counts: [2] },
  { name: 'PostgreSQL', start: () => PostgresLab.start(), pause: 'SELECT pg_sleep(0.002)', counts: [2, 4] },
];

describe.each(DATABASES)('on $name', ({ start, pause, counts }) => {
  let lab: SqlLab;
  let work: () => Promise<unknown>;
  beforeAll(async () => {
    lab = await start();
    const admin = await lab.server.adminConnection('app');
    work = () => admin.query(pause);
    return async () => {
      await admin.end();
      await lab[Symbol.asyncDispose]();
    };
  });
  afterEach(() => lab.reset());

  describe.each([{ pooled: false }, { pooled: true }])('a hot key (pooled: $pooled)', ({ pooled }) => {
    /** Shares a key among processes, each with a number of callers. */
    const share = async (...callersOf: readonly number[]) => {
      const processes = callersOf.map((callers) => ({ ...lab.open({}, { pooled }), callers }));
      const found = await hotKey(newKey('hot'), processes, work);
      expect(found.longestGapMs).toBeLessThan(NOT_WOKEN_MS);
      await lab.nothingLeft(...processes);
      return found;
    };

    it.each(counts)('of %i processes is shared equally, and no wake-up is lost', async (count) => {
      const { jain } = await share(...Array.from({ length: count }, () => 1));
      expect(jain).toBeGreaterThan(0.95);
    });

    it('is passed on after each batch of a process with many callers', async () => {
      const { perTurn } = await share(5, 1);
      // Of one process five, and of the other one.
      expect(perTurn).toBeLessThan(5);
    });

    it('is not kept by a process that asks always without waiting', async () => {
      const [greedy, waiter] = [lab.open({}, { pooled }), lab.open({}, { pooled })];
      const before = await greedyBeforeWaiter(newKey(), greedy.locks, waiter.locks, work);
      // A waiter in the queue lets its two callers in once each.
      expect(before).toBeLessThan(4);
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
      await worker.next('started');
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
  });
});
