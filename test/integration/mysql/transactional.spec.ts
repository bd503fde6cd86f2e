import { createConnection, type Connection } from 'mysql2/promise';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MysqlLab, newKey } from '../../support/mysql/mysql-lab.js';

/** Well below the time-out of a row lock, so that a request that waits for the transaction fails the test. */
const WAIT = { waitMs: 500 };

describe('locks in MySQL, beside transactions of the app in the same database', () => {
  let lab: MysqlLab;
  let app: Connection;

  beforeAll(async () => {
    lab = await MysqlLab.start();
    app = await createConnection(lab.server.uri);
    await app.query('CREATE TABLE stock (remaining INT NOT NULL) ENGINE=InnoDB');
    return async () => {
      app.destroy();
      await lab[Symbol.asyncDispose]();
    };
  });
  beforeEach(() => lab.query('DELETE FROM stock; INSERT INTO stock VALUES (1)'));
  afterEach(() => lab.reset());

  const remaining = async (connection: Connection): Promise<number> => {
    const [rows] = await connection.query('SELECT remaining FROM stock');
    return (rows as { remaining: number }[])[0]!.remaining;
  };

  /** Buys the last piece, if there is one. */
  const buy = async (connection: Connection): Promise<boolean> => {
    if ((await remaining(connection)) === 0) return false;
    await connection.query('UPDATE stock SET remaining = remaining - 1');
    return true;
  };

  it('a release inside an open transaction does not wait for it, and a rollback does not undo it', async () => {
    const [one, other] = [lab.open(), lab.open()];
    const key = newKey();
    await app.beginTransaction();
    expect(await buy(app)).toBe(true);
    const lease = await one.locks.acquire(key, WAIT);
    expect(await lease.release()).toBe('released');
    const next = await other.locks.acquire(key, WAIT);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await app.rollback();
    expect(await next.verify()).toBe(true);
    await next.release();
    await lab.nothingLeft(one, other);
  });

  it('with the lock inside the transaction the next holder reads the data from before the commit', async () => {
    const [one, other] = [lab.open(), lab.open()];
    const key = newKey();
    await using second = await createConnection(lab.server.uri);
    await app.beginTransaction();
    const lease = await one.locks.acquire(key, WAIT);
    expect(await buy(app)).toBe(true);
    await lease.release();
    const next = await other.locks.acquire(key, WAIT);
    expect(await remaining(second)).toBe(1);
    await app.commit();
    await next.release();
  });

  it('with the lock outside the transaction one of two processes buys the last piece', async () => {
    const key = newKey();
    const sell = async (): Promise<boolean> =>
      lab.open().locks.withLock(key, { waitMs: 5_000 }, async () => {
        await using connection = await createConnection(lab.server.uri);
        await connection.beginTransaction();
        const bought = await buy(connection);
        await connection.commit();
        return bought;
      });
    expect((await Promise.all([sell(), sell()])).sort()).toEqual([false, true]);
    expect(await remaining(app)).toBe(0);
  });
});
