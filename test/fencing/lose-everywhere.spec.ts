import { createTestingLocks, type LossReport } from 'nest-redis-lock/testing';
import { fenceTransaction, migrateFencing } from 'nest-redis-lock/fencing';
import type { Lease } from 'nest-redis-lock';
import { Pool, type PoolClient } from 'pg';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PostgresServer } from '../support/servers/postgres-server.js';

const WRITE = 'UPDATE stock SET remaining = remaining - 1';

let server: PostgresServer;
let pool: Pool;
let source: DataSource;

beforeAll(async () => {
  server = await PostgresServer.start();
  pool = new Pool({ connectionString: server.uri });
  source = await new DataSource({ type: 'postgres', url: server.uri }).initialize();
  await migrateFencing(pool);
  await pool.query('CREATE TABLE stock (remaining int UNIQUE DEFERRABLE INITIALLY DEFERRED)');
});
afterAll(async () => {
  await source?.destroy();
  await pool?.end();
  await server?.[Symbol.asyncDispose]();
});
beforeEach(() => pool.query('TRUNCATE stock'));

/** Loses the lock everywhere in work on a client of the pool. */
const lose = (
  work: (
    client: PoolClient,
    locked: (inner: (lease: Lease) => unknown) => Promise<unknown>,
  ) => Promise<unknown>,
  meanwhile?: () => unknown,
): Promise<LossReport> => {
  const locks = createTestingLocks('memory', { maxWaitMs: 1_000 });
  const scenario = async () => {
    const client = await pool.connect();
    try {
      await work(client, (inner) => locks.withLock('tea', inner));
    } finally {
      client.release();
    }
  };
  return locks.testing.loseEverywhere(scenario, { databases: [pool, source], meanwhile });
};

const written = (report: LossReport): string[] => [...new Set(report.unfenced.map(({ what }) => what))];

describe('loseEverywhere with a pool of pg', () => {
  it('reports a write whose transaction is around the lock, and not a fenced one', async () => {
    const around = (isFenced: boolean) =>
      lose(async (client, locked) => {
        void client.query('BEGIN');
        await locked(async (lease) => {
          if (isFenced) await fenceTransaction(client, lease);
          await client.query(WRITE);
        });
        await client.query('COMMIT');
      });
    expect(written(await around(false))).toEqual([WRITE]);
    expect(written(await around(true))).toEqual([]);
  });

  it('reports a write behind a fence that was rolled back, and no write that was', async () => {
    const report = await lose((client, locked) =>
      locked(async (lease) => {
        await client.query('BEGIN; SAVEPOINT none; COMMIT');
        await client.query('BEGIN');
        await client.query('SAVEPOINT a');
        await expect(fenceTransaction(client, lease)).rejects.toThrow('savepoint');
        await client.query('DELETE FROM stock');
        await client.query('ROLLBACK TO SAVEPOINT a');
        await client.query(WRITE);
        await client.query('COMMIT');
      }),
    );
    expect(written(report)).toEqual(['BEGIN; SAVEPOINT none; COMMIT', WRITE]);
  });

  it('reports no write of a COMMIT that fails or replies ROLLBACK, and the autocommitted ones behind it', async () => {
    const report = await lose((client, locked) =>
      locked(async () => {
        await client.query('BEGIN');
        await client.query('INSERT INTO stock VALUES (1), (1)');
        await expect(client.query('COMMIT')).rejects.toThrow('unique');
        await client.query('BEGIN');
        await client.query('DELETE FROM stock');
        await expect(client.query('SELECT wrong')).rejects.toThrow('wrong');
        await client.query('COMMIT');
        await client.query(WRITE);
      }),
    );
    expect(written(report)).toEqual([WRITE]);
  });

  it('lets the next holder write at each step although a client was released in a transaction', async () => {
    let times = 0;
    const report = await lose(
      (client, locked) =>
        locked(async () => {
          const other = await pool.connect();
          await other.query('BEGIN');
          other.release(true);
          await client.query(WRITE);
        }),
      () => pool.query(WRITE).then(() => times++),
    );
    expect(times).toBe(2 * report.steps);
  });
});

describe('loseEverywhere with a client that is not watched', () => {
  const fenced = async (client: PoolClient, lease: Lease): Promise<void> => {
    await client.query('BEGIN');
    try {
      await fenceTransaction(client, lease);
      await client.query('DELETE FROM stock');
    } finally {
      await client.query('COMMIT');
    }
  };
  const beside = (work: (client: PoolClient, other: Pool) => unknown): Promise<LossReport> => {
    const other = new Pool({ connectionString: server.uri });
    const report = lose((client, locked) =>
      locked(async (lease) => {
        await fenced(client, lease);
        await work(client, other);
      }),
    );
    return report.finally(() => other.end());
  };

  it('is green when all of them are watched', async () => {
    const report = await beside((client) => client.query('SELECT 1'));
    expect(String(report)).toMatch(/^No write went on unfenced/);
  });

  it.each<[string, (client: PoolClient, other: Pool) => unknown]>([
    ['of a second pool', (_, other) => other.query(WRITE)],
    ['of a second pool, and nobody awaits it', (_, other) => void other.query(WRITE).catch(() => undefined)],
    [
      'of a second pool, by a callback',
      (_, other) => new Promise<void>((done) => other.query(WRITE, () => done())),
    ],
    [
      'of the method of the class',
      async (client) => Reflect.apply(Reflect.get(Object.getPrototypeOf(client), 'query'), client, [WRITE]),
    ],
    ['of HTTP', () => fetch(`http://127.0.0.1:${new URL(server.uri).port}`).catch(() => undefined)],
  ])('says that it did not see the data %s', async (_, work) => {
    const { unfenced } = await beside(work);
    expect(unfenced.filter(({ step }) => step === 0)).toContainEqual(
      expect.objectContaining({ why: 'unwatched', what: expect.stringMatching(/^Socket\.write to /) }),
    );
  });
});

describe('loseEverywhere with nested transactions of TypeORM', () => {
  it('reports a write behind the fence of an inner one that was rolled back', async () => {
    const report = await lose((_client, locked) =>
      locked((lease) =>
        source.transaction(async (outer) => {
          const inner = outer.transaction(async (tx) => {
            await fenceTransaction(tx, lease);
            throw new Error('no');
          });
          await inner.catch(() => undefined);
          await outer.query(WRITE);
        }),
      ),
    );
    expect(written(report)).toEqual([WRITE]);
    expect(report.unfenced[0]!.at).toContain('lose-everywhere.spec.ts');
  });
});
