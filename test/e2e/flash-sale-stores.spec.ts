import { beforeAll, describe, expect, it } from 'vitest';
import type { SaleReport } from '../../sample-app/src/demo/run-sale.js';
import { MysqlServer } from '../support/mysql/mysql-server.js';
import { bareBonesPath, buildSampleApp, FlashSaleCli } from './flash-sale-cli.js';

const ITEMS = 20;
const RUN_TIMEOUT_MS = 240_000;
const SOLD_OUT = {
  ...{ sold: ITEMS, oversold: 0, doubleOrders: 0 },
  ...{ chargedTwice: 0, unpaid: 0, chargedForNothing: 0 },
};

interface Result {
  readonly locks: string;
  readonly reports: readonly SaleReport[];
}

const run = async (args: readonly string[], env?: Record<string, string>) => {
  const cli = new FlashSaleCli([...args, '--buyers', '300', '--items', String(ITEMS), '--json'], env);
  const code = await cli.exitCode();
  // When there is no result, stderr says why.
  expect(cli.stdout, cli.stderr).not.toBe('');
  const result = JSON.parse(cli.stdout) as Result;
  expect(cli.stdout + cli.stderr).not.toContain('secret');
  expect(result.reports.flatMap(({ complaints }) => complaints)).toEqual([]);
  expect(code, cli.stderr).toBe(0);
  return result;
};

beforeAll(buildSampleApp, RUN_TIMEOUT_MS);

describe('npm start -- --store', () => {
  it(
    'mysql sells every item once on a mariadbd that it starts, while instances are stopped and killed',
    async () => {
      const { locks, reports } = await run(['--store', 'mysql', '--strategies', 'locked']);
      expect(locks).toMatch(/^MySQL: .*mariadbd, started for this run/);
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT, faults: { killed: 1, stopped: 1 } });
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'mysql uses the server of MYSQL_URL, without its password in the output, and leaves no table behind',
    async () => {
      await using server = await MysqlServer.start();
      const { locks, reports } = await run(['--store', 'mysql', '--strategies', 'manual'], {
        MYSQL_URL: server.uri,
      });
      expect(locks).toContain(`MySQL: the one of MYSQL_URL at ${server.host}:${server.port}.`);
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT });
      expect(await server.admin('SHOW TABLES FROM app')).toEqual([]);
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'postgres sells every item once in an embedded PostgreSQL, while instances are stopped and killed',
    async () => {
      const { locks, reports } = await run(['--store', 'postgres', '--strategies', 'locked']);
      expect(locks).toMatch(/^PostgreSQL: the embedded PostgreSQL at 127/);
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT, faults: { killed: 1, stopped: 1 } });
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'memory sells with one instance, and says that it causes no faults',
    async () => {
      using bare = bareBonesPath();
      const { locks, reports } = await run(['--store', 'memory', '--strategies', 'locked'], {
        PATH: bare.path,
      });
      expect(locks).toContain('one instance sells, without faults');
      expect(reports[0]).toMatchObject({ facts: SOLD_OUT, faults: { killed: 0, stopped: 0 } });
    },
    RUN_TIMEOUT_MS,
  );

  it.each([
    [
      'a store that it does not have',
      'oracle',
      {},
      'There is no store "oracle". Choose from redis, mysql, postgres, memory.',
    ],
    [
      'an address that is none',
      'mysql',
      { MYSQL_URL: 'secret' },
      'MYSQL_URL must be an address such as mysql://',
    ],
    [
      'a server that is not there',
      'mysql',
      { MYSQL_URL: 'mysql://app:secret@127.0.0.1:1/app' },
      'MySQL cannot be used (the one of MYSQL_URL at 127.0.0.1:1): ',
    ],
  ])('refuses %s, in words', async (_what, store, env, message) => {
    const cli = new FlashSaleCli(['--store', store], env);
    expect(await cli.exitCode()).toBe(2);
    expect(cli.stderr).toContain(message);
    expect(cli.stdout + cli.stderr).not.toMatch(/secret|\n +at /);
  });
});
