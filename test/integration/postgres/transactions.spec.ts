import type { Client } from 'pg';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { newKey, PostgresLab } from '../../support/postgres/postgres-lab.js';

let lab: PostgresLab;
/** A connection of the app. */
let app: Client;
beforeAll(async () => {
  lab = await PostgresLab.start();
  app = await lab.server.adminConnection('app');
  await app.query('CREATE TABLE orders (id text)');
  return async () => {
    await app.end();
    await lab[Symbol.asyncDispose]();
  };
});
afterEach(() => lab.reset());

describe('a lock beside a transaction of the app', () => {
  it('is released while the transaction is open, and another process acquires it', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await one.locks.acquire(key);
    const waiting = two.locks.acquire(key, { waitMs: 10_000 });
    await lab.waiting(key);
    await app.query('BEGIN; INSERT INTO orders VALUES (1)');
    expect(await lease.release()).toBe('released');
    await (await waiting).release();
    // This is why the lock belongs outside the transaction: the next holder does not see the row.
    expect(await lab.query('SELECT * FROM orders')).toEqual([]);
    await app.query('COMMIT');
    expect(await lab.query('SELECT * FROM orders')).toHaveLength(1);
  });

  it('that is around it: the next holder sees what it has committed', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const first = one.locks.withLock(key, async () => {
      await app.query('BEGIN; DELETE FROM orders; INSERT INTO orders VALUES (2)');
      await lab.waiting(key);
      await app.query('COMMIT');
    });
    await until(() => lab.isHeld(key));
    const seen = await two.locks.withLock(key, { waitMs: 10_000 }, () => lab.query('SELECT * FROM orders'));
    await first;
    expect(seen).toEqual([{ id: '2' }]);
  });
});
