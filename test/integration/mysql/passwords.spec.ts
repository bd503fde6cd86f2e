import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { MysqlConnectionOptions } from '../../../lib/stores/mysql/mysql.store.js';
import { until } from '../../support/async.js';
import { MysqlLab, newKey } from '../../support/mysql/mysql-lab.js';

let lab: MysqlLab;
beforeAll(async () => {
  lab = await MysqlLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

const open = (password: MysqlConnectionOptions['password'], commandTimeoutMs = 2_000) => {
  const { host, port } = lab.server;
  return lab.open({}, { uri: `mysql://app@${host}:${port}/app`, options: { password }, commandTimeoutMs });
};

describe('a password as a function', () => {
  it('is asked for each connection, and held locks stay while it changes', async () => {
    let secret = 'secret';
    const { locks, manager } = open(() => Promise.resolve(secret));
    await manager.open();
    const held = await locks.acquire(newKey());
    try {
      secret = 'another';
      await lab.query("ALTER USER 'app'@'%' IDENTIFIED BY 'another'");
      for (const id of await lab.connections()) await lab.query(`KILL ${id}`).catch(() => undefined);
      expect(await until(() => locks.withLock(newKey(), () => 'ran'))).toBe('ran');
      expect(await held.verify()).toBe(true);
    } finally {
      await lab.query("ALTER USER 'app'@'%' IDENTIFIED BY 'secret'");
    }
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('no token')), /function password failed/],
    [
      'never settles',
      () => new Promise<string>(() => undefined),
      /function password did not settle within 100 ms/,
    ],
  ])('that %s fails the request, and nothing was executed', async (_, password, message) => {
    const { locks } = open(password, 100);
    const failure = { code: 'LOCK_STORE_FAILED', outcome: 'not-executed' };
    const acquired = until(() =>
      locks.acquire(newKey()).catch((error: Error) => message.test(error.message) && error),
    );
    expect(await acquired).toMatchObject(failure);
  });
});
