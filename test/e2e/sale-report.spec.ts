import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PgliteServer } from '../../sample-app/src/demo/postgres/pglite-server.js';
import type { StockReport } from '../../sample-app/src/flash-sale/flash-sale.service.js';
import { until } from '../support/async.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { buildSampleApp, FlashSaleCli } from './flash-sale-cli.js';

const ITEMS = 60;
const START_TIMEOUT_MS = 90_000;

beforeAll(buildSampleApp, 240_000);

describe('the report of a sale', () => {
  let redis: RedisServer;
  let database: PGlite;
  let databaseServer: PgliteServer;
  let cli: FlashSaleCli;
  let urls: string[];

  beforeAll(async () => {
    redis = await RedisServer.start();
    database = await PGlite.create();
    databaseServer = new PgliteServer(database);
    const databaseUrl = `postgres://postgres@127.0.0.1:${await databaseServer.listen()}/postgres`;
    cli = new FlashSaleCli(['--serve', '--items', String(ITEMS), '--instances', '2', '--charge-ms', '3'], {
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

  const order = async (url: string, userId: string): Promise<number> => {
    const response = await fetch(`${url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ userId }),
    });
    await response.arrayBuffer();
    return response.status;
  };
  const report = async (url: string): Promise<StockReport> =>
    (await (await fetch(`${url}/report`)).json()) as StockReport;

  it('never sees half an order, at any instance, while orders are written, and blocks no customer', async () => {
    expect(urls, cli.stderr).toHaveLength(2);
    const reports: StockReport[] = [];
    let isOver = false;
    const reading = urls.map(async (url) => {
      while (!isOver) reports.push(await report(url));
    });
    const statuses: number[] = [];
    for (let i = 0; i < ITEMS; i += 6) {
      const buyers = Array.from({ length: 6 }, (_, n) => order(urls[n % 2]!, `buyer-${i + n}`));
      statuses.push(...(await Promise.all(buyers)));
      // One of them was asked for after these orders.
      const soFar = reports.length;
      await until(() => reports.length > soFar + urls.length, { what: 'the report has these orders' });
    }
    isOver = true;
    await Promise.all(reading);
    expect(statuses).toEqual(statuses.map(() => 201));
    for (const seen of reports) {
      expect(seen).toMatchObject({ sku: 'sneaker', unpaid: 0 });
      expect(seen.paid + seen.remaining).toBe(ITEMS);
    }
    // They were made while the sale went on.
    expect(new Set(reports.map(({ paid }) => paid)).size).toBeGreaterThan(5);
    expect(await report(urls[0]!)).toEqual({ sku: 'sneaker', remaining: 0, paid: ITEMS, unpaid: 0 });
  }, 60_000);
});
