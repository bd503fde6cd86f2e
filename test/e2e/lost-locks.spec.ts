import { PGlite } from '@electric-sql/pglite';
import { Test, type TestingModule } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import { migrateFencing } from 'nest-redis-lock/fencing';
import { RedisLockTestingModule, TestingLockService, type LossReport } from 'nest-redis-lock/testing';
import { DataSource, type EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Lease } from 'nest-redis-lock';
import { PgliteServer } from '../../sample-app/src/demo/postgres/pglite-server.js';
import { FencedStock } from '../../sample-app/src/flash-sale/fenced-stock.js';
import { fenceTable, flashSaleDatabase } from '../../sample-app/src/flash-sale/flash-sale.database.js';
import { FlashSaleModule } from '../../sample-app/src/flash-sale/flash-sale.module.js';
import { FlashSaleService } from '../../sample-app/src/flash-sale/flash-sale.service.js';
import { Order } from '../../sample-app/src/flash-sale/order.entity.js';
import { Stock } from '../../sample-app/src/flash-sale/stock.entity.js';
import { PaymentClient } from '../../sample-app/src/payment/payment.client.js';

const SKU = 'headphones';
const ITEMS = 5;
const START_TIMEOUT_MS = 90_000;

describe('a checkout of the flash sale that loses its lock at each step', () => {
  let server: PgliteServer;
  let pglite: PGlite;
  let module: TestingModule;
  let database: DataSource;

  beforeAll(async () => {
    pglite = await PGlite.create();
    server = new PgliteServer(pglite);
    const url = `postgres://postgres@127.0.0.1:${await server.listen()}/postgres`;
    module = await Test.createTestingModule({
      imports: [
        RedisLockTestingModule.forRoot({ maxWaitMs: 1_000 }),
        TypeOrmModule.forRoot({ ...flashSaleDatabase(url, 'lost'), synchronize: true }),
        FlashSaleModule.forRoot({ strategy: 'locked', paymentUrl: 'http://127.0.0.1:9' }),
      ],
    })
      .overrideProvider(PaymentClient)
      .useValue({ charge: () => Promise.resolve() })
      .compile();
    await module.init();
    database = module.get(DataSource);
    await migrateFencing(database, { table: fenceTable(database) });
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    await module?.close();
    await server.close();
    await pglite.close();
  });

  /** Sells one article in each run, to the same customer. */
  const loseEverywhere = (meanwhile?: (lease: Lease) => unknown): Promise<LossReport> =>
    module.get(TestingLockService).testing.loseEverywhere(
      async () => {
        await database.getRepository(Order).clear();
        await database.getRepository(Stock).save({ sku: SKU, remaining: ITEMS });
        await module.get(FlashSaleService).order(SKU, 'ann');
      },
      {
        databases: [database],
        meanwhile,
        // A log of what the fence refused.
        except: ({ what }) => what.includes('refused_writes'),
      },
    );

  it('writes nothing that is not fenced', async () => {
    const report = await loseEverywhere();
    expect(report.toString()).toMatch(/^No write went on unfenced/);
    expect(report.writes).toBe(3);
  });

  it('is refused by the fence when the next holder has read the stock', async () => {
    const stock = module.get(FencedStock);
    const report = await loseEverywhere((lease) => stock.read(SKU, lease));
    report.throwIfUnfenced();
    expect(report.failed).toBeGreaterThan(0);
  });

  it('writes unfenced without fenceTransaction, and the report names the statements and their lines', async () => {
    type Work = (tx: EntityManager) => Promise<unknown>;
    const unfenced = (_sku: string, _step: string, _lease: Lease, work: Work) => database.transaction(work);
    const stock = Object.assign(module.get(FencedStock), { fenced: unfenced });
    try {
      const report = await loseEverywhere();
      expect(() => report.throwIfUnfenced()).toThrow(
        /3 writes went on unfenced.*UPDATE "lost_stock".*fenced-stock\.ts.*INSERT INTO "lost_orders".*UPDATE "lost_orders"/s,
      );
    } finally {
      Reflect.deleteProperty(stock, 'fenced');
    }
  });
});
