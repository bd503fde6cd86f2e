import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { LockService } from '../../../lib/nest/service/lock.service.js';
import type { SqlStore } from '../../../lib/stores/sql/sql.store.js';
import { until } from '../../support/async.js';
import { MysqlLab } from '../../support/mysql/mysql-lab.js';
import { PostgresLab } from '../../support/postgres/postgres-lab.js';
import { newKey, rowName, type SqlLab } from '../../support/sql/sql-lab.js';
import { openLocksOn } from '../../support/stores/open-locks-on.js';
import { claimFor } from '../../support/stores/harness.js';

const WAIT = { waitMs: 20_000 };
const TURN_MS = 250;
/** A read that finds what no message says comes after this time at the latest, with some more on a busy machine. */
const FOUND_MS = 3_500;
const PROCESSES = 6;
const GRANTS = 300;

interface Database {
  readonly name: string;
  start(): Promise<SqlLab>;
  /** Number of statements since the start of the server. */
  readonly statements: string;
  /** Maximum number of statements for each grant; a slow machine reads some more. */
  readonly maxStatements: number;
  readonly now: string;
  /** What the heir is told at a release: the time after which it asks. */
  readonly heirHears: readonly unknown[];
}

const DATABASES: readonly Database[] = [
  {
    name: 'MySQL',
    start: () => MysqlLab.start(),
    statements:
      "SELECT VARIABLE_VALUE AS n FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'QUESTIONS'",
    maxStatements: 12,
    now: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
    heirHears: [],
  },
  {
    name: 'PostgreSQL',
    async start() {
      const lab = await PostgresLab.start({ args: ['shared_preload_libraries=pg_stat_statements'] });
      await lab.query('CREATE EXTENSION pg_stat_statements');
      return lab;
    },
    // Transactions of a server are no measure: each message begins one in each connection that listens.
    statements: "SELECT sum(calls) AS n FROM pg_stat_statements WHERE userid = 'app'::regrole",
    maxStatements: 6,
    now: '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint',
    heirHears: [expect.closeTo(TURN_MS + 15, -2)],
  },
];

describe.each(DATABASES)('on $name', ({ start, statements, maxStatements, now, heirHears }) => {
  let lab: SqlLab;
  beforeAll(async () => {
    lab = await start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  /** A process that waits. No poller asks for it, so it hears only messages. */
  const waiter = async (store: SqlStore, key: string) => {
    const heard: unknown[] = [];
    const claim = claimFor(rowName(key), { waits: true });
    expect((await store.kinds.exclusive.acquire(claim)).status).toBe('taken');
    const watch = store.kinds.exclusive.watch(claim, {
      notified: () => void heard.push('free'),
      freeIn: (ms) => void heard.push(ms),
      failed: () => undefined,
    });
    await until(() => watch.live, { what: 'messages arrive' });
    const isToldToAsk = () => heard.includes('free');
    return { heard, watch, store, isToldToAsk };
  };

  /** A key that a process holds, and for which others wait. */
  const crowd = async (count: number) => {
    const [key, holder] = [newKey('crowd'), lab.open()];
    // A process has a bell once another one has waited for it.
    const first = await holder.locks.acquire(key);
    const waiting = lab.open().locks.acquire(key, WAIT);
    await lab.waiting(key);
    await first.release();
    await (await waiting).release();
    const lease = await holder.locks.acquire(key, WAIT);
    const waiters = [];
    for (let i = 0; i < count; i += 1) waiters.push(await waiter(lab.store(), key));
    return { key, lease, waiters };
  };

  it('a release tells the first of the wait queue and its heir, and no other process', async () => {
    const { lease, waiters } = await crowd(4);
    for (const { heard } of waiters) heard.length = 0;
    await lease.release();
    await until(() => waiters[0]!.isToldToAsk(), { what: 'the first is told' });
    await until(() => waiters[1]!.heard.length >= heirHears.length, { what: 'the heir is told' });
    expect(waiters.slice(1).flatMap(({ isToldToAsk }) => [isToldToAsk()])).toEqual([false, false, false]);
    if (heirHears.length > 0)
      expect(waiters.map(({ heard }) => heard)).toEqual([['free'], heirHears, [], []]);
    for (const { watch } of waiters) watch.close();
  });

  it.each([
    { how: 'gives up', leave: ({ watch }: { watch: { close(): void } }) => watch.close() },
    { how: 'closes its store', leave: ({ store }: { store: SqlStore }) => void store.close() },
  ])('a first process that $how passes the key on', async ({ leave }) => {
    const { lease, waiters } = await crowd(3);
    const [first, second, third] = waiters as [Waiter, Waiter, Waiter];
    await lease.release();
    await until(() => first.isToldToAsk(), { what: 'the first is told' });
    leave(first);
    await until(() => second.isToldToAsk(), { what: 'the second is told' });
    expect(third.isToldToAsk()).toBe(false);
    second.watch.close();
    third.watch.close();
  });
  type Waiter = Awaited<ReturnType<typeof waiter>>;

  it('two services of one store have the same share of a key, beside other processes', async () => {
    const store = lab.store();
    const services = [openLocksOn(store), openLocksOn(store), lab.open(), lab.open(), lab.open()];
    const [key, grants] = [newKey(), services.map(() => 0)];
    const ofStore = (): readonly number[] => grants.slice(0, 2);
    await Promise.all(
      services.map(async ({ locks }, i) => {
        while (Math.max(...ofStore()) < 40) await locks.withLock(key, WAIT, () => void (grants[i]! += 1));
      }),
    );
    expect(Math.min(...ofStore())).toBeGreaterThan(25);
  });

  describe('a waiter behind processes that have crashed', () => {
    /** Time in ms from a release until a waiter has the key, before which `before` happens. */
    const delayMs = async (before: (key: string) => Promise<unknown>, release = true): Promise<number> => {
      const [holder, next] = [lab.open(), lab.open()];
      const lease = await holder.locks.acquire(newKey());
      const waiting = next.locks.acquire(lease.key, WAIT);
      await lab.waiting(lease.key);
      await before(lease.key);
      const releasedAt = performance.now();
      if (release) await lease.release();
      await (await waiting).release();
      return performance.now() - releasedAt;
    };
    const set = (key: string, what: string) =>
      lab.query(`UPDATE nest_lock SET ${what} WHERE name = '${rowName(key)}' AND member = ''`);
    const enterBefore = (count: number) => (key: string) => {
      const ids = Array.from({ length: count }, (_, i) => `;dead${String(i).padStart(8, '0')}`);
      return set(key, `queue = concat('${ids.join('')}', queue)`);
    };

    it('waits for one turn', async () => {
      const ms = await delayMs(enterBefore(1));
      expect(ms).toBeGreaterThan(TURN_MS - 50);
      expect(ms).toBeLessThan(4 * TURN_MS);
    });

    it.each([2, 20])('has the key after its next read, when they are %i', async (count) => {
      const ms = await delayMs(enterBefore(count));
      expect(ms).toBeGreaterThan(2 * TURN_MS - 50);
      expect(ms).toBeLessThan(FOUND_MS);
    });

    it('and takes it without a place in the queue, drops them all, so they cost that time once', async () => {
      const [holder, next] = [lab.open(), lab.open()];
      const lease = await holder.locks.acquire(newKey());
      await enterBefore(20)(lease.key);
      await lease.release();
      await (await until(() => next.locks.tryAcquire(lease.key), { what: 'their time is over' })).release();
      expect(await next.locks.tryAcquire(lease.key)).not.toBeNull();
    });

    it('has a key of which no message says that it is free', async () => {
      const ms = await delayMs((key) => set(key, `until = -${now}`), false);
      expect(ms).toBeLessThan(FOUND_MS);
    });
  });

  it('a grant costs a few statements, whatever the crowd, and each process has its share', async () => {
    const count = async (): Promise<number> => {
      await until(async () => (await lab.connections()).length === 0, { what: 'all connections have ended' });
      return Number((await lab.query(statements))[0]!['n']);
    };
    /** Statements of work in many processes, from their start to their end. */
    const cost = async (work: (locks: LockService, i: number) => Promise<unknown>): Promise<number> => {
      const before = await count();
      const services = Array.from({ length: PROCESSES }, () => lab.open({ holderInfo: false }, { lanes: 1 }));
      await Promise.all(services.map(({ locks }, i) => work(locks, i)));
      for (const { manager } of services) await manager.close();
      return (await count()) - before;
    };
    const key = newKey('hot');
    const grants = Array.from({ length: PROCESSES }, () => 0);
    const sum = (): number => grants.reduce((all, its) => all + its);
    const fixed = await cost((locks) => locks.withLock(newKey(), WAIT, () => undefined));
    const all = await cost(async (locks, i) => {
      while (sum() < GRANTS) await locks.withLock(key, WAIT, () => void (grants[i]! += 1));
    });
    expect((all - fixed) / sum()).toBeLessThan(maxStatements);
    const jain = sum() ** 2 / (PROCESSES * grants.reduce((all, its) => all + its ** 2, 0));
    expect(jain).toBeGreaterThan(0.95);
  });
});
