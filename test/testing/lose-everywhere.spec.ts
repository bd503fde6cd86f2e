import 'reflect-metadata';
import { AsyncResource } from 'node:async_hooks';
import type { Database } from 'sql.js';
import { DataSource, type EntityManager } from 'typeorm';
import { bindLocks, createTestingLocks, type LossReport } from 'nest-redis-lock/testing';
import { fenceTransaction, migrateFencing } from 'nest-redis-lock/fencing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { currentLease, Locked, type Lease } from 'nest-redis-lock';

let database: DataSource;

beforeAll(async () => {
  database = await new DataSource({ type: 'sqljs' }).initialize();
  await migrateFencing(database);
  await database.query('CREATE TABLE stock (sku TEXT PRIMARY KEY, remaining INT)');
  await database.query('CREATE TABLE log (line TEXT)');
});
afterAll(() => database.destroy());
beforeEach(() => database.query("INSERT OR REPLACE INTO stock VALUES ('tea', 10)"));

const SELL = "UPDATE stock SET remaining = remaining - 1 WHERE sku = 'tea'";
const remaining = async (): Promise<number> =>
  (await database.query<[{ remaining: number }]>('SELECT remaining FROM stock'))[0].remaining;

const setup = () => {
  const locks = createTestingLocks('memory', { maxWaitMs: 1_000 });
  /** Runs work under the lock of the stock, and loses it everywhere. */
  const lose = (
    work: (lease: Lease) => unknown,
    options: Partial<Parameters<typeof locks.testing.loseEverywhere>[1]> = {},
  ): Promise<LossReport> => {
    const scenario = () => locks.withLock('stock:tea', work);
    return locks.testing.loseEverywhere(scenario, { databases: [database], ...options });
  };
  return { locks, lose };
};

/** Number of storages that Node carries into each new promise. Node 24 and newer carry them at no cost. */
const storages = (): number => Object.getOwnPropertySymbols(new AsyncResource('any')).length;

const inTransaction = (work: (tx: EntityManager) => Promise<unknown>): Promise<unknown> =>
  database.transaction(work);

const fencedSale = (lease: Lease): Promise<unknown> =>
  inTransaction(async (tx) => {
    await fenceTransaction(tx, lease);
    await tx.query(SELL);
  });

/** Raises the fence as a later holder does, beside the only connection that TypeORM has to sql.js. */
const raiseFence = (next: Lease): unknown =>
  (database.driver as unknown as { databaseConnection: Database }).databaseConnection.run(
    'INSERT OR REPLACE INTO lock_fence (name, fence, seen) VALUES (?, ?, CURRENT_TIMESTAMP)',
    ['lock:stock:tea', next.fencingToken],
  );

const unfencedSale = (): Promise<unknown> => inTransaction((tx) => tx.query(SELL));

/** The steps at which a report lists a write, as `1` for a pause and `1!` for a loss that was noticed. */
const losses = ({ unfenced }: LossReport): string[] =>
  unfenced.map(({ step, noticed }) => `${step}${noticed ? '!' : ''}`);

it('a test that has ended costs later promises of the process nothing', async () => {
  const { lose } = setup();
  const work = (lease: Lease) => fencedSale(lease);
  await lose(work);
  const before = storages();
  for (let i = 0; i < 3; i += 1) await lose(work);
  expect(storages()).toBe(before);
});

describe('a write in a transaction', () => {
  it('is reported without fenceTransaction, at each step, with its line', async () => {
    const { lose } = setup();
    const report = await lose(unfencedSale);
    expect(report).toMatchObject({ steps: 3, writes: 1, runs: 8, failed: 0 });
    expect(losses(report)).toEqual(['1', '1!', '2', '2!', '3', '3!']);
    const [first] = report.unfenced;
    expect(first).toMatchObject({ what: SELL, lostBefore: 'BEGIN TRANSACTION' });
    expect(first!.at).toMatch(/lose-everywhere\.spec\.ts/);
    expect(() => report.throwIfUnfenced()).toThrow(
      /1 write went on unfenced.*UPDATE stock.*lost before step 1/s,
    );
  });

  it('has the line of the app although source maps name the files of packages elsewhere', async () => {
    const { prepareStackTrace } = Error;
    Error.prepareStackTrace = (_, sites) => {
      const files = sites.map((site) => String(site.getFileName()).replace(/^.*node_modules/, '/src'));
      return ['Error', ...files.map((file) => `    at ${file}`)].join('\n');
    };
    try {
      const report = await setup().lose(unfencedSale);
      expect(report.unfenced[0]!.at).toMatch(/lose-everywhere\.spec\.ts/);
    } finally {
      Error.prepareStackTrace = prepareStackTrace;
    }
  });

  it('is not reported with fenceTransaction, whether it commits or is refused', async () => {
    const { lose } = setup();
    const quiet = await lose(fencedSale);
    expect(quiet.unfenced).toEqual([]);
    expect(() => quiet.throwIfUnfenced()).not.toThrow();
    expect(String(quiet)).toMatch(/^No write went on unfenced/);
    // The next holder is in the database at the steps before the transaction: there, the fence refuses.
    const refused = await lose(fencedSale, { meanwhile: raiseFence });
    expect(refused.unfenced).toEqual([]);
    expect(refused.failed).toBe(2);
  });

  it('is protected wherever the fence stands in its transaction, and not by the fence of another one', async () => {
    const { lose } = setup();
    const last = await lose((lease) =>
      inTransaction(async (tx) => {
        await tx.query(SELL);
        await fenceTransaction(tx, lease);
      }),
    );
    expect(last.unfenced).toEqual([]);
    const other = await lose(async (lease) => {
      await inTransaction((tx) => fenceTransaction(tx, lease));
      await unfencedSale();
    });
    expect(other.unfenced.map(({ what }) => what)).toContain(SELL);
  });

  it('is reported when the section goes on although the fence refused it', async () => {
    const { lose } = setup();
    const report = await lose(
      (lease) =>
        inTransaction(async (tx) => {
          await fenceTransaction(tx, lease).catch(() => undefined);
          await tx.query(SELL);
        }),
      { meanwhile: raiseFence },
    );
    expect(losses(report)).toEqual(['1', '1!']);
    expect(report.failed).toBe(0);
  });

  it('is not protected by the fence of another lock', async () => {
    const { locks, lose } = setup();
    await using other = await locks.testing.hold('other');
    expect((await lose(() => fencedSale(other))).unfenced).not.toEqual([]);
  });

  it('is not reported when its transaction is rolled back', async () => {
    const { lose } = setup();
    const before = await remaining();
    const report = await lose(async () => {
      await database.query("INSERT INTO log VALUES ('try')");
      await inTransaction(async (tx) => {
        await tx.query(SELL);
        throw new Error('no');
      }).catch(() => undefined);
    });
    expect(report.unfenced.map(({ what }) => what)).not.toContain(SELL);
    await expect(remaining()).resolves.toBe(before);
  });
});

describe('a write without a transaction', () => {
  it('is reported, also when it looks at the signal: a paused process does not know', async () => {
    const { lose } = setup();
    const report = await lose(async ({ signal }) => {
      await database.query('SELECT 1');
      signal.throwIfAborted();
      await database.query(SELL);
    });
    // Before the SELECT, only the pause is dangerous; between the check and the write, both are.
    expect(losses(report)).toEqual(['1', '2', '2!']);
    expect(report.failed).toBe(1);
    expect(String(report)).toContain('also with an aborted signal');
  });

  it('is reported only behind the question to the store, when it asks', async () => {
    const { lose } = setup();
    const report = await lose(async (lease) => {
      await database.query('SELECT 1');
      if (!(await lease.verify())) throw new Error('lost');
      await database.query(SELL);
    });
    expect(losses(report)).toEqual(['2', '2!']);
  });

  it('may be named in except', async () => {
    const { lose } = setup();
    const logged = async (lease: Lease): Promise<void> => {
      await fencedSale(lease);
      await database.query("INSERT INTO log VALUES ('sold')");
    };
    expect((await lose(logged)).unfenced).not.toEqual([]);
    const except = ({ what }: { what: string }) => what.startsWith('INSERT INTO log');
    expect((await lose(logged, { except })).unfenced).toEqual([]);
  });
});

describe('a method that writes elsewhere', () => {
  class Payments {
    charged = 0;
    async charge(): Promise<number> {
      return ++this.charged;
    }
    async save(lease: Lease): Promise<unknown> {
      return fencedSale(lease);
    }
  }

  it('is a step and a write', async () => {
    const { locks } = setup();
    const payments = new Payments();
    const report = await locks.testing.loseEverywhere(
      () => locks.withLock('stock:tea', () => payments.charge()),
      { writes: [[payments, 'charge']] },
    );
    expect(report).toMatchObject({ steps: 1, writes: 1 });
    expect(report.unfenced[0]).toMatchObject({ what: 'Payments.charge', lostBefore: 'Payments.charge' });
    expect(report.unfenced[0]!.at).toMatch(/lose-everywhere\.spec\.ts/);
    expect(Object.keys(payments)).toEqual(['charged']);
  });

  it('may be excepted if it does nothing but write in a fenced transaction', async () => {
    const { locks } = setup();
    const payments = new Payments();
    const scenario = () => locks.withLock('stock:tea', (lease) => payments.save(lease));
    const report = await locks.testing.loseEverywhere(scenario, {
      writes: [[payments, 'save']],
      except: ({ why }) => why === 'opaque' || why === 'rejected',
    });
    expect(report).toMatchObject({ steps: 1, failed: 1, unfenced: [] });
  });
});

describe('the scenario', () => {
  it('has steps only under a lock, and a later section is not late', async () => {
    const { locks } = setup();
    const scenario = async (): Promise<void> => {
      await database.query(SELL);
      await locks.withLock('stock:tea', fencedSale);
      await locks.withLock('stock:tea', () => database.query('SELECT 1'));
      await locks.withLock('log', (lease) =>
        inTransaction(async (tx) => {
          await fenceTransaction(tx, lease);
          await tx.query("INSERT INTO log VALUES ('sold')");
        }),
      );
    };
    const report = await locks.testing.loseEverywhere(scenario, { databases: [database] });
    expect(report.steps).toBeGreaterThan(4);
    expect(report.unfenced).toEqual([]);
  });

  it('may use @Locked, other modes and several keys; all locks are lost', async () => {
    const { locks } = setup();
    const lost: unknown[] = [];
    class Shop {
      @Locked(['stock:tea', 'stock:mint'], { mode: 'write' })
      async sell(): Promise<void> {
        const { signal } = currentLease();
        await database.query(SELL);
        lost.push(signal.aborted);
      }
    }
    const shop = bindLocks(new Shop(), locks);
    const report = await locks.testing.loseEverywhere(() => shop.sell(), { databases: [database] });
    expect(losses(report)).toEqual(['1', '1!']);
    expect(lost).toEqual([false, false, true, false]);
  });

  it('sees a next holder with a later token, and leaves nothing behind', async () => {
    const { locks, lose } = setup();
    const tokens: [number, number][] = [];
    let current = 0;
    await lose(
      (lease) => {
        current = lease.fencingToken;
        return fencedSale(lease);
      },
      { meanwhile: (next) => void tokens.push([current, next.fencingToken]) },
    );
    expect(tokens.length).toBeGreaterThan(0);
    for (const [before, later] of tokens) expect(later).toBeGreaterThan(before);
    expect(locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
    await expect(locks.isLocked('stock:tea')).resolves.toBe(false);
    expect(Object.getOwnPropertyNames(database)).not.toContain('createQueryRunner');
  });

  it('takes the lease away in the store, which a question finds', async () => {
    const { lose } = setup();
    const seen: unknown[] = [];
    await lose(async (lease) => {
      await database.query(SELL);
      seen.push([lease.lost, await lease.verify()]);
    });
    expect(seen).toEqual([[false, true], [false, false], [true, false], [false, true]]); // prettier-ignore
  });

  it('fails with its own error in the run without a loss, and with the error of meanwhile', async () => {
    const { lose } = setup();
    await expect(lose(() => Promise.reject(new Error('own')))).rejects.toThrow('own');
    const meanwhile = () => Promise.reject(new Error('next'));
    await expect(lose(unfencedSale, { meanwhile })).rejects.toThrow('next');
    expect(Object.getOwnPropertyNames(database)).not.toContain('createQueryRunner');
  });

  it('is refused if it makes no watched write under a lock: green would mean nothing', async () => {
    const { locks, lose } = setup();
    await expect(lose(() => undefined)).rejects.toThrow('saw no call');
    await expect(lose(() => database.query('SELECT 1'))).rejects.toThrow('saw no write');
    const unlocked = locks.testing.loseEverywhere(unfencedSale, { databases: [database] });
    await expect(unlocked).rejects.toThrow('saw no call');
  });

  it.each([{ holdAtLeastMs: 60_000 }, { oncePerMs: 60_000 }])(
    'loses its lock also with %o, which would keep the next run out',
    async (options) => {
      const { locks } = setup();
      await using other = await locks.testing.hold('other');
      const scenario = () => locks.withLock('stock:tea', options, unfencedSale);
      const report = await locks.testing.loseEverywhere(scenario, { databases: [database] });
      expect(report).toMatchObject({ steps: 3, runs: 8, failed: 0 });
      expect(losses(report)).toEqual(['1', '1!', '2', '2!', '3', '3!']);
      expect(other.lost).toBe(false);
    },
  );

  it.each<[string, () => Promise<unknown>, object]>([
    [
      'fails, because data of the first run is left',
      () => database.query("INSERT INTO stock VALUES ('mint', 1)"),
      { message: expect.stringContaining('failed in a run that lost nothing'), cause: expect.any(Error) },
    ],
    [
      'writes less, because data of the first run is left',
      async () => {
        if ((await remaining()) === 10) await database.query(SELL);
      },
      { message: expect.stringContaining('made 0 instead of 1 writes') },
    ],
  ])('is refused if a run without a loss %s', async (_, work, error) => {
    await database.query("DELETE FROM stock WHERE sku = 'mint'");
    await expect(setup().lose(work)).rejects.toMatchObject(error);
  });

  it('is refused if its first run still holds the lock', async () => {
    const { locks } = setup();
    const scenario = async () => {
      await locks.acquire('stock:tea', { waitMs: 0 });
      await unfencedSale();
    };
    const refused = locks.testing.loseEverywhere(scenario, { databases: [database] });
    await expect(refused).rejects.toMatchObject({ cause: { code: 'LOCK_TAKEN' } });
  });

  it.each<[unknown, string]>([
    [undefined, 'an object such as { databases: [dataSource] }'],
    [{}, 'watches nothing'],
    [{ database: [] }, 'database is no option of testing.loseEverywhere. Did you mean databases?'],
    [{ databases: {} }, 'databases must be a list of objects'],
    [{ databases: [{}] }, 'databases must be a list of TypeORM data sources'],
    [{ writes: [['charge']] }, 'writes must be a list of [object, names of its methods]'],
    [{ writes: [[{}, 'charge']] }, 'writes must be a list of [object, names of its methods]'],
    [{ writes: [], except: 1 }, 'except must be a function'],
  ])('is refused with the options %o', async (options, part) => {
    const { locks } = setup();
    await expect(locks.testing.loseEverywhere(() => 1, options as never)).rejects.toThrow(part);
  });

  it('is refused with mode off, and if it is no function', async () => {
    const off = createTestingLocks('off').testing;
    await expect(off.loseEverywhere(() => 1, { databases: [database] })).rejects.toThrow(
      "needs mode 'memory'",
    );
    const call = setup().locks.testing.loseEverywhere(1 as never, { databases: [database] });
    await expect(call).rejects.toThrow('must be a function');
  });
});
