import { readFileSync } from 'node:fs';
import { LockConfigurationError, type Lease } from 'nest-redis-lock';
import {
  FENCING_MIGRATIONS,
  fenceTransaction,
  migrateFencing,
  sweepFences,
  type FencingOptions,
  type FencingTransaction,
  type SweepOptions,
} from 'nest-redis-lock/fencing';
import { describe, expect, it } from 'vitest';
import { newKey, newLocks } from './leases.js';

/** A transaction that accepts every token, and notes the statements. */
const recording = (): {
  readonly tx: FencingTransaction;
  readonly texts: string[];
  readonly sent: unknown[];
} => {
  const texts: string[] = [];
  const sent: unknown[] = [];
  return {
    texts,
    sent,
    tx: (sql, parameters) => {
      texts.push(sql);
      sent.push(...parameters);
      return parameters.filter((value) => typeof value === 'string').map((name) => ({ name }));
    },
  };
};

const refusal = async (call: Promise<unknown>): Promise<string> => {
  const error: unknown = await call.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(LockConfigurationError);
  return (error as Error).message;
};

describe('fenceTransaction', () => {
  it('takes an option that is undefined for the default', async () => {
    const { tx, texts } = recording();
    const lease = await newLocks().acquire(newKey());
    await fenceTransaction(tx, lease, { dialect: 'postgres', table: undefined });
    expect(texts).toEqual([expect.stringContaining('INSERT INTO "lock_fence" ')]);
  });

  it('stores the final key, with the prefix of the module', async () => {
    const { tx, sent } = recording();
    const lease = await newLocks().acquire('order:7');
    await fenceTransaction(tx, lease, { dialect: 'sqlite' });
    expect(sent).toEqual(['lock:order:7', lease.fencingToken]);
  });

  it('locks the rows of several keys in the order of their names, whatever the order of the call', async () => {
    const { tx, sent } = recording();
    await fenceTransaction(tx, await newLocks().acquire(['b', 'a', 'c']), { dialect: 'sqlite' });
    expect(sent.filter((value) => typeof value === 'string')).toEqual(['lock:a', 'lock:b', 'lock:c']);
  });

  it.each<[string, unknown, string]>([
    [
      'another database',
      { dialect: 'oracle' },
      'dialect must be "postgres" or "mysql" or "sqlite", but is "oracle"',
    ],
    [
      'an unknown option',
      { dialect: 'mysql', tabel: 'x' },
      'tabel is no option of fenceTransaction. Its options are table, dialect.',
    ],
    [
      'a name with quotes',
      { dialect: 'mysql', table: 'a`b' },
      'table must be the name of a table, or schema.table',
    ],
    ['a name with three parts', { dialect: 'mysql', table: 'a.b.c' }, 'table must be the name of a table'],
    ['no object', null, 'The options of fenceTransaction must be an object, but is null'],
    ['no database for a function', {}, 'pass the option dialect, one of postgres, mysql, sqlite'],
  ])('refuses options with %s before it runs a statement', async (_case, options, message) => {
    const { tx, texts } = recording();
    const lease = await newLocks().acquire(newKey());
    expect(await refusal(fenceTransaction(tx, lease, options as FencingOptions))).toContain(message);
    expect(texts).toEqual([]);
  });

  it('refuses a lease without a token, and a value that is no lease', async () => {
    const { tx, texts } = recording();
    const locks = newLocks();
    const call = (lease: unknown) => refusal(fenceTransaction(tx, lease as Lease, { dialect: 'postgres' }));
    expect(await call(await locks.acquire('read', { mode: 'read' }))).toContain(
      'There is no fencing token for "read"',
    );
    expect(await call(await locks.permits('permit', { permits: 2 }).acquire())).toContain('no fencing token');
    expect(await call(undefined)).toContain('fenceTransaction needs a lease, but got undefined');
    expect(await call({ fencingToken: 7 })).toContain('needs a lease, but got an object');
    expect(texts).toEqual([]);
  });

  it.each([undefined, null, 7, {}, { query: 'x' }])('refuses the transaction %o', async (tx) => {
    const lease = await newLocks().acquire(newKey());
    expect(await refusal(fenceTransaction(tx as FencingTransaction, lease, { dialect: 'mysql' }))).toContain(
      'does not know how to run a statement on',
    );
  });

  it.each([[undefined], [[['lock:x', 1]]], [{ rows: [] }]])(
    'refuses a function that returns %o instead of rows',
    async (rows) => {
      const lease = await newLocks().acquire(newKey());
      const tx = (() => rows) as unknown as FencingTransaction;
      expect(await refusal(fenceTransaction(tx, lease, { dialect: 'postgres' }))).toContain('got no rows');
    },
  );

  it('passes an error of the database on as it is', async () => {
    const error = Object.assign(new Error('could not serialize access'), { code: '40001' });
    const lease = await newLocks().acquire(newKey());
    const tx = () => Promise.reject(error);
    await expect(fenceTransaction(tx, lease, { dialect: 'postgres' })).rejects.toBe(error);
  });
});

describe('the table of the fences', () => {
  it.each(['postgres', 'mysql', 'sqlite'] as const)(
    'has the statement of the documentation on %s',
    async (dialect) => {
      const { tx, texts } = recording();
      await migrateFencing(tx, { dialect });
      expect(texts).toEqual([expect.stringContaining(FENCING_MIGRATIONS[dialect])]);
      const file = new URL(`../../docs/sql/lock_fence.${dialect}.sql`, import.meta.url);
      expect(readFileSync(file, 'utf8')).toBe(`${FENCING_MIGRATIONS[dialect]};\n`);
    },
  );

  it.each([0, 0.5, NaN, '30', undefined])(
    'is not swept of rows older than %o days',
    async (olderThanDays) => {
      const { tx, texts } = recording();
      const options = { dialect: 'mysql', olderThanDays } as SweepOptions;
      expect(await refusal(sweepFences(tx, options))).toContain(
        'olderThanDays must be a whole number of days',
      );
      expect(texts).toEqual([]);
    },
  );
});
