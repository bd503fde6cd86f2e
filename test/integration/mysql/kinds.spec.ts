import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockConfigurationError } from 'nest-redis-lock';
import { MysqlDialect } from '../../../lib/stores/mysql/mysql-dialect.js';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { until } from '../../support/async.js';
import { MysqlLab, newKey, NOW } from '../../support/mysql/mysql-lab.js';

const DAY_US = 86_400_000_000;

let lab: MysqlLab;
beforeAll(async () => {
  lab = await MysqlLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

describe('MySQL refuses by name', () => {
  it.each(['fair', 'read', 'write'] as const)('a lock with mode: %s', async (mode) => {
    const { locks } = lab.open();
    const refusal = locks.acquire(newKey(), { mode });
    await expect(refusal).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(refusal).rejects.toThrow(`MySQL cannot keep locks of the kind "${mode}"`);
  });

  it('semaphores and latches', () => {
    const { locks } = lab.open();
    expect(() => locks.semaphore(newKey())).toThrow('MySQL cannot keep semaphores');
    expect(() => locks.countDownLatch(newKey())).toThrow(/MySQL cannot keep .*latches/);
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

it('a server that ends connections with their transactions keeps those of the store open', async () => {
  await lab.query("SET GLOBAL completion_type = 'RELEASE'");
  try {
    // A service of an earlier test may still close its own.
    const others = await lab.connections();
    const { locks, manager } = lab.open({}, { lanes: 1 });
    // Its checks have a connection of their own.
    await manager.open();
    const permits = locks.permits(newKey(), { permits: 1 });
    await permits.withPermit(() => undefined);
    const own = (await lab.connections()).filter((one) => !others.includes(one));
    expect(own.length).toBeGreaterThan(0);
    await permits.withPermit(() => undefined);
    expect(await lab.connections()).toEqual(expect.arrayContaining(own));
  } finally {
    await lab.query('SET GLOBAL completion_type = DEFAULT');
  }
});

describe('a table that gets a trigger while apps run', () => {
  it('lets no request be granted beside a holder', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const lease = await one.locks.acquire(newKey());
    await two.manager.open();
    await lab.query('CREATE TRIGGER late BEFORE UPDATE ON nest_lock FOR EACH ROW SET @seen = 1');
    try {
      await expect(two.locks.tryAcquire(lease.key)).rejects.toThrow('must have no trigger');
    } finally {
      await lab.query('DROP TRIGGER late');
    }
    expect(await two.locks.tryAcquire(lease.key)).toBeNull();
  });
});

describe('the sweep', () => {
  const settings = { table: 'nest_lock', runtime: systemRuntime(), pooled: true, timeoutMs: 2_000 };

  /** Sweeps once, on a connection. */
  const sweep = async (): Promise<number> => {
    const dialect = new MysqlDialect({ ...settings, connection: () => ({ uri: lab.server.uri }) });
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
    const names = await lab.query(
      'SELECT DISTINCT CONVERT(name USING utf8mb4) AS name FROM nest_lock ORDER BY name',
    );
    expect(names.map(({ name }) => name as string)).toEqual([
      'lock:door',
      'lock:living',
      'lock:released',
      'young end',
      'young fence',
    ]);
    expect(await lab.query("SELECT name FROM nest_lock WHERE member <> ''")).toHaveLength(1);
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
    const before = await lab.deadlocks();
    const opened = lab.open();
    const keys = Array.from({ length: 20 }, (_, i) => `swept-${i}`);
    const old = Array.from({ length: 300 }, (_, i) => `('old${i}', 1, 1)`).join(', ');
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
      await lab.query(`UPDATE nest_lock SET fence = 1 WHERE until = 0;
INSERT IGNORE INTO nest_lock (name, until, fence) VALUES ${old}`);
      await Promise.all([sweep(), sweep(), sweep()]);
    }
    sweeping = false;
    await Promise.all(locking);
    expect(await lab.deadlocks()).toBe(before);
    expect(opened.lost).toEqual([]);
  });
});
