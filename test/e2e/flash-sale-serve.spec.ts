import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { complaints } from '../../sample-app/src/demo/promises.js';
import type { Facts } from '../../sample-app/src/demo/sales.js';
import { PgliteServer } from '../../sample-app/src/demo/postgres/pglite-server.js';
import { until } from '../support/async.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { buildSampleApp, FlashSaleCli } from './flash-sale-cli.js';

const START_TIMEOUT_MS = 90_000;

beforeAll(buildSampleApp, 240_000);

describe('npm start -- --serve, with a given Redis and a given PostgreSQL', () => {
  let redis: RedisServer;
  let database: PGlite;
  let databaseServer: PgliteServer;
  let cli: FlashSaleCli;
  let urls: string[];

  const post = async (url: string, body: unknown) => {
    const response = await fetch(`${url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  beforeAll(async () => {
    redis = await RedisServer.start();
    database = await PGlite.create();
    await database.exec('CREATE TABLE foreign_table (id int)');
    databaseServer = new PgliteServer(database);
    const databaseUrl = `postgres://postgres@127.0.0.1:${await databaseServer.listen()}/postgres`;
    cli = new FlashSaleCli(['--serve', '--items', '2', '--instances', '2', '--charge-ms', '3'], {
      REDIS_URL: redis.url,
      DATABASE_URL: databaseUrl,
    });
    await until(() => cli.stdout.includes('Ctrl-C') || !cli.running, { timeoutMs: START_TIMEOUT_MS });
    urls = [...cli.stdout.matchAll(/^ {2}(http:\S+)$/gm)].map(([, url = '']) => url);
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    cli.interrupt();
    await cli.exitCode();
    await redis.stop();
    await databaseServer.close();
    await database.close();
  });

  it('says which servers it took, and prints the address of every instance and how to ask it', () => {
    expect(urls, cli.stderr).toHaveLength(2);
    expect(cli.stdout).toContain('REDIS_URL');
    expect(cli.stdout).toContain('DATABASE_URL');
    expect(cli.stdout).toContain(`curl ${urls[0]}`);
    expect(cli.stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  it('sells to a buyer once, at whichever instance, until nothing is left', async () => {
    const [first = '', second = ''] = urls;
    expect(await post(first, { userId: 'ada' })).toMatchObject({
      status: 201,
      body: { userId: 'ada', status: 'paid' },
    });
    expect(await post(second, { userId: 'ada' })).toMatchObject({
      status: 409,
      body: { code: 'ALREADY_ORDERED' },
    });
    expect(await post(second, { userId: 'bob' })).toMatchObject({ status: 201 });
    expect(await post(first, { userId: 'eve' })).toMatchObject({ status: 409, body: { code: 'SOLD_OUT' } });
    const view = await fetch(first);
    expect(await view.json()).toEqual({ sku: 'sneaker', remaining: 0, orders: 2, strategy: 'locked' });
  });

  it('refuses a body that is none, and an article that is not on sale', async () => {
    const [url = ''] = urls;
    expect(await post(url, {})).toMatchObject({ status: 400 });
    expect(await post(url, { userId: 'a b' })).toMatchObject({ status: 400 });
    expect(await post(url, { userId: 'ada', price: 0 })).toMatchObject({ status: 400 });
    expect(await post(url.replace(/sneaker$/, 'boots'), { userId: 'ada' })).toMatchObject({
      status: 404,
      body: { code: 'UNKNOWN_SKU' },
    });
  });

  it('ends on Ctrl-C and leaves nothing in Redis or in the database', async () => {
    cli.interrupt();
    expect(await cli.exitCode(), cli.stderr).toBe(0);
    expect(await redis.cli('KEYS', '*')).toEqual([]);
    const tables = await database.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`,
    );
    expect(tables.rows.map(({ name }) => name)).toEqual(['foreign_table']);
    await expect(fetch(urls[0] ?? '')).rejects.toThrow();
  });
});

describe('the command line', () => {
  it('ends with 130 and tidies up when Ctrl-C comes in the middle of a sale', async () => {
    await using redis = await RedisServer.start();
    const cli = new FlashSaleCli(['--all', '--strategies', 'manual', '--buyers', '300'], {
      REDIS_URL: redis.url,
    });
    await until(() => / [1-9]\d* % \|/.test(cli.stdout) || !cli.running, { timeoutMs: START_TIMEOUT_MS });
    cli.interrupt();
    expect(await cli.exitCode(), cli.stderr).toBe(130);
    expect(await redis.cli('KEYS', '*')).toEqual([]);
    expect((await redis.text('CLIENT', 'LIST')).trim().split('\n')).toHaveLength(1);
  }, 120_000);

  it('exits with 1 when the load was too small for the sale without a lock to go wrong', async () => {
    await using redis = await RedisServer.start();
    const cli = new FlashSaleCli(['--strategies', 'none', '--buyers', '1', '--items', '9'], {
      REDIS_URL: redis.url,
    });
    expect(await cli.exitCode()).toBe(1);
    expect(cli.stdout).toContain('BROKEN: none did not break every rule');
  }, 120_000);

  it.each([
    ['--buyers', 'many', '--buyers must be a whole number'],
    ['--items', '0', '--items must be a whole number of at least 1'],
    ['--strategies', 'hope', 'There is no strategy "hope"'],
    ['--colour', 'red', 'Unknown option'],
  ])('refuses %s %s in words, with exit code 2', async (flag, value, message) => {
    const cli = new FlashSaleCli([flag, value]);
    expect(await cli.exitCode()).toBe(2);
    expect(cli.stderr).toContain(message);
  });

  it('explains itself with --help', async () => {
    const cli = new FlashSaleCli(['--help']);
    expect(await cli.exitCode()).toBe(0);
    expect(cli.stdout).toContain('--buyers');
    expect(cli.stdout).toContain('REDIS_URL');
  });
});

describe('the verdict on a sale', () => {
  const kept: Facts = {
    sold: 20,
    oversold: 0,
    doubleOrders: 0,
    chargedTwice: 0,
    chargedForNothing: 0,
    unpaid: 0,
    staleWritesRefused: 0,
    longestOutageMs: 0,
  };
  const verdict = (strategy: Parameters<typeof complaints>[0], facts: Partial<Facts>) =>
    complaints(strategy, { facts: { ...kept, ...facts }, items: 20, buyers: 300 });

  it.each(['optimistic', 'sql', 'locked', 'manual'] as const)(
    'is good for %s when every rule was kept',
    (strategy) => {
      expect(verdict(strategy, {})).toEqual([]);
    },
  );

  it.each([
    ['too many sold', { sold: 21, oversold: 1 }, ['optimistic', 'sql', 'locked', 'manual']],
    ['items left over', { sold: 19 }, ['optimistic', 'sql', 'locked', 'manual']],
    ['two orders for a customer', { doubleOrders: 1 }, ['optimistic', 'sql', 'locked', 'manual']],
    ['a customer charged twice', { chargedTwice: 1 }, ['optimistic', 'locked', 'manual']],
    ['an unpaid order', { unpaid: 1 }, ['locked', 'manual']],
    ['a payment without an order', { chargedForNothing: 1 }, ['locked', 'manual']],
  ] as const)('finds %s where the strategy promised otherwise', (_what, facts, promisedBy) => {
    const complaining = (['optimistic', 'sql', 'locked', 'manual'] as const).filter(
      (strategy) => verdict(strategy, facts).length > 0,
    );
    expect(complaining).toEqual(promisedBy);
  });
});
