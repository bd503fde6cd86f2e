import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockConfigurationError } from 'nest-redis-lock';
import { PostgresDialect } from '../../../lib/stores/postgres/postgres-dialect.js';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { until, within } from '../../support/async.js';
import { PostgresLab, newKey, NOW } from '../../support/postgres/postgres-lab.js';

const DAY_US = 86_400_000_000;

let lab: PostgresLab;
beforeAll(async () => {
  lab = await PostgresLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

describe('PostgreSQL refuses by name', () => {
  it.each(['fair', 'read', 'write'] as const)('a lock with mode: %s', async (mode) => {
    const { locks } = lab.open();
    const refusal = locks.acquire(newKey(), { mode });
    await expect(refusal).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(refusal).rejects.toThrow(`PostgreSQL cannot keep locks of the kind "${mode}"`);
  });

  it('semaphores and latches', () => {
    const { locks } = lab.open();
    expect(() => locks.semaphore(newKey())).toThrow('PostgreSQL cannot keep semaphores');
    expect(() => locks.countDownLatch(newKey())).toThrow(/PostgreSQL cannot keep .*latches/);
  });
});

describe('an exclusive lock and a permit of one key', () => {
  it('see each other, and the error says which kind has the key', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await one.locks.acquire(key);
    const permits = two.locks.permits(key, { permits: 3 });
    await expect(permits.acquire({ waitMs: 0 })).rejects.toMatchObject({ heldAs: 'exclusive' });
    await lease.release();
    const permit = await permits.acquire();
    await expect(one.locks.acquire(key, { waitMs: 0 })).rejects.toMatchObject({ heldAs: 'permit' });
    await permit.release();
  });
});

describe('a column that gets another type while apps run', () => {
  it.each([
    ['owner TYPE varchar(400)', 'owner TYPE text COLLATE "C"'],
    ['fence TYPE numeric', 'fence TYPE bigint'],
  ])('disturbs no request: %s', async (change, back) => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const use = async (): Promise<void> => {
      const lease = await one.locks.acquire(key);
      expect(await two.locks.tryAcquire(key)).toBeNull();
      const waiting = two.locks.acquire(key, { waitMs: 10_000 });
      await lab.waiting(key);
      await lease.extend(5_000);
      await lease.release();
      await (await waiting).release();
    };
    // The server plans a statement once and for all after some times.
    for (let i = 0; i < 6; i += 1) await use();
    for (const type of [change, back]) {
      await lab.query(`ALTER TABLE nest_lock ALTER COLUMN ${type}`);
      await use();
    }
  });
});

describe('a table that is dropped and created again', () => {
  it('is used by connections that are open, and tokens grow on', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const token = () => locks.withLock(key, (lease) => lease.tokenFor(key));
    // The server plans a statement once and for all after some times.
    let last = 0;
    for (let i = 0; i < 10; i += 1) last = await token();
    await lab.query('DROP TABLE nest_lock');
    await expect(token()).rejects.toMatchObject({ outcome: 'not-executed' });
    await lab.store().migrate();
    expect(await token()).toBeGreaterThan(last);
  });

  it('that grows: statements that were planned while it was small read one row', async () => {
    const { locks } = lab.open({}, { lanes: 1 });
    const key = newKey();
    await lab.query('VACUUM ANALYZE nest_lock');
    for (let i = 0; i < 10; i += 1) await locks.withLock(key, () => undefined);
    await lab.query("INSERT INTO nest_lock (name) SELECT 'row' || n FROM generate_series(1, 20000) n");
    const read = async () =>
      Number((await lab.query("SELECT pg_stat_get_tuples_returned('nest_lock'::regclass) AS n"))[0]!['n']);
    const before = await read();
    await locks.withLock(key, () => undefined);
    // The connection reports what it has read when it ends, at the latest.
    await lab.query("SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE usename = 'app'");
    expect((await read()) - before).toBeLessThan(1_000);
  });
});

describe('the sweep', () => {
  const settings = {
    table: 'nest_lock',
    schema: undefined,
    runtime: systemRuntime(),
    pooled: true,
    timeoutMs: 2_000,
  };

  /** Sweeps once, on a connection. */
  const sweep = async (): Promise<number> => {
    const dialect = new PostgresDialect({
      ...settings,
      connection: () => ({ connectionString: lab.server.uri, types: { getTypeParser: () => String } }),
      listening: undefined,
    });
    const session = await dialect.connect();
    try {
      return await dialect.sweep((statement) => session.send(statement));
    } finally {
      session.destroy();
    }
  };

  it('deletes rows that ended more than a day ago; living ones, permits and young fences stay', async () => {
    const { locks } = lab.open();
    await locks.acquire('living');
    await locks.permits('door', { permits: 2 }).acquire();
    await locks.withLock('released', () => undefined);
    const old = `${NOW} - ${DAY_US} - 1000000`;
    await lab.query(`INSERT INTO nest_lock (name, until, fence) VALUES
('dead', ${old}, ${old}), ('dead released', 0, ${old}), ('young fence', ${old}, ${NOW} - ${DAY_US} + 60000000), ('young end', ${NOW}, 1);
INSERT INTO nest_lock (name, member, kind, owner, until) VALUES ('dead', 'o', 'permit', 'o', ${old})`);
    expect(await sweep()).toBe(3);
    const names = await lab.query('SELECT DISTINCT name FROM nest_lock ORDER BY name');
    expect(names.map(({ name }) => name as string)).toEqual([
      'lock:door',
      'lock:living',
      'lock:released',
      'young end',
      'young fence',
    ]);
    expect(await lab.query("SELECT name FROM nest_lock WHERE member <> ''")).toHaveLength(1);
  });

  it('leaves a row alone that a transaction has locked: it may become a lock', async () => {
    await lab.query(
      "INSERT INTO nest_lock (name, until, fence) VALUES ('lock:busy', 1, 1), ('lock:dead', 1, 1)",
    );
    await using _acquiring = await lab.foreignTransaction('busy');
    expect(await within(5_000, sweep(), 'the sweep')).toBe(1);
    expect(await lab.query('SELECT name FROM nest_lock')).toEqual([{ name: 'lock:busy' }]);
  });

  it('deletes notes of processes whose time is over, and no other', async () => {
    const { processes } = lab.store();
    const [over, living] = [randomUUID(), randomUUID()];
    await processes.write(over, 'text', 1);
    await processes.write(living, 'text', 60_000);
    await until(async () => (await processes.read([over]))[0] === undefined, { what: 'it is over' });
    expect(await sweep()).toBe(1);
    expect(await lab.query("SELECT queue FROM nest_lock WHERE member = 'note'")).toHaveLength(1);
    expect(await processes.read([over, living])).toEqual([undefined, 'text']);
  });

  it('beside other sweeps and locks makes no deadlock, and takes no lock away', async () => {
    const deadlocks = async () =>
      Number(
        (await lab.query('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'))[0]![
          'deadlocks'
        ],
      );
    const before = await deadlocks();
    const opened = lab.open();
    const keys = Array.from({ length: 20 }, (_, i) => `swept-${i}`);
    let sweeping = true;
    const lock = async (key: string): Promise<void> => {
      while (sweeping) {
        await opened.locks.withLock(key, { waitMs: 5_000 }, async (lease) =>
          expect(await lease.verify()).toBe(true),
        );
        await opened.locks.permits(`p${key}`, { permits: 2 }).withPermit(() => undefined);
      }
    };
    const locking = keys.map(lock);
    for (let round = 0; round < 5; round += 1) {
      // Also the rows of locks that come back look old.
      await lab.query(`UPDATE nest_lock SET fence = 1, until = 1 WHERE until < ${NOW} AND member = '';
INSERT INTO nest_lock (name, until, fence) SELECT 'old' || n, 1, 1 FROM generate_series(1, 300) n ON CONFLICT DO NOTHING`);
      await Promise.all([sweep(), sweep(), sweep()]);
    }
    sweeping = false;
    await Promise.all(locking);
    expect(await deadlocks()).toBe(before);
    expect(opened.lost).toEqual([]);
  });
});
