import { Injectable, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { ClsPluginTransactional, Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { ClsModule } from 'nestjs-cls';
import { Locked, LockService, RedisLockModule } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../support/nest/recording-logger.js';
import { until } from '../support/async.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { TransactionDatabase, type PgAdapter } from './transactions.database.js';

type Answer = 'sold' | 'sold out';

/** Sells what there is one of: looks, decides, and writes, each a statement of its own. */
@Injectable()
class Desk {
  looks = 0;

  constructor(private readonly database: TransactionHost<PgAdapter>) {}

  async sell(sku: string, userId: string): Promise<Answer> {
    const { rows } = await this.database.tx.query<{ sold: number }>(
      'SELECT count(*)::int AS sold FROM orders WHERE sku = $1',
      [sku],
    );
    this.looks++;
    if (rows[0]!.sold >= 1) return 'sold out';
    await this.database.tx.query('INSERT INTO orders (sku, user_id) VALUES ($1, $2)', [sku, userId]);
    return 'sold';
  }
}

/** A callee that looks safe: whatever it does, it does under the lock. */
@Injectable()
class LockedDesk {
  constructor(private readonly desk: Desk) {}

  @Locked('sku:<<sku>>')
  async sell(sku: string, userId: string): Promise<Answer> {
    return this.desk.sell(sku, userId);
  }
}

abstract class Checkout {
  abstract buy(sku: string, userId: string): Promise<Answer>;
}

/** Wrong: the transaction belongs to the caller and ends after the lock of the callee. */
@Injectable()
class CallerOwnedTransaction extends Checkout {
  constructor(private readonly desk: LockedDesk) {
    super();
  }

  @Transactional()
  async buy(sku: string, userId: string): Promise<Answer> {
    return this.desk.sell(sku, userId);
  }
}

/** Wrong: the decorator on top is the outer one, so the transaction ends after the lock. */
@Injectable()
class TransactionalAbove extends Checkout {
  constructor(private readonly desk: Desk) {
    super();
  }

  @Transactional()
  @Locked('sku:<<sku>>')
  async buy(sku: string, userId: string): Promise<Answer> {
    return this.desk.sell(sku, userId);
  }
}

/** Right: the lock is taken before the transaction begins and released after it was committed. */
@Injectable()
class LockedAbove extends Checkout {
  constructor(private readonly desk: Desk) {
    super();
  }

  @Locked('sku:<<sku>>')
  @Transactional()
  async buy(sku: string, userId: string): Promise<Answer> {
    return this.desk.sell(sku, userId);
  }
}

describe('locks and transactions, on a real PostgreSQL and a real Redis', () => {
  let redis: RedisServer;
  let database: TransactionDatabase;
  let app: TestingModule;
  let logger: RecordingLogger;
  let secondBuyerCame: () => boolean;

  beforeAll(async () => {
    redis = await RedisServer.start();
    database = await TransactionDatabase.start();
  });

  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    await redis.stop();
  });

  beforeEach(async () => {
    logger = new RecordingLogger();
    await database.pool.query('CREATE TABLE orders (sku text, user_id text)');
  });

  afterEach(async () => {
    await app.close();
    await database.pool.query('DROP TABLE orders');
  });

  /** The first transaction stays open until a second buyer has looked, or waits for the lock. */
  const beforeCommit = async (): Promise<void> => {
    await until(secondBuyerCame, { what: 'the second buyer has looked or waits for the lock' });
  };

  const start = async (checkout: Type<Checkout>): Promise<Checkout> => {
    app = await Test.createTestingModule({
      imports: [
        ClsModule.forRoot({
          plugins: [new ClsPluginTransactional({ adapter: database.adapter(beforeCommit) })],
        }),
        RedisLockModule.forRoot({ redis: redis.url }),
      ],
      providers: [Desk, LockedDesk, { provide: Checkout, useClass: checkout }],
    })
      .setLogger(logger)
      .compile();
    await app.init();
    const desk = app.get(Desk);
    const locks = app.get(LockService);
    // Two leases at once on the only key: one is held, one is waited for.
    secondBuyerCame = () => desk.looks >= 2 || locks.usage.leases >= 2;
    return app.get(Checkout);
  };

  const warnings = () => logger.warnings.filter((text) => text.includes('@Locked'));

  const twoBuyers = async (checkout: Checkout): Promise<{ answers: Answer[]; orders: number }> => {
    const answers = await Promise.all([checkout.buy('last', 'ada'), checkout.buy('last', 'bob')]);
    const { rows } = await database.pool.query<{ orders: number }>(
      'SELECT count(*)::int AS orders FROM orders',
    );
    return { answers, orders: rows[0]!.orders };
  };

  it('a transaction around a locked callee oversells: the lock is free before the commit', async () => {
    const checkout = await start(CallerOwnedTransaction);
    expect(await twoBuyers(checkout)).toEqual({ answers: ['sold', 'sold'], orders: 2 });
    // Nothing inside the callee can tell that its caller has a transaction open.
    expect(warnings()).toEqual([]);
  });

  it('@Transactional above @Locked oversells as well, and start-up warns of it', async () => {
    const checkout = await start(TransactionalAbove);
    expect(warnings()).toEqual([
      expect.stringMatching(
        /^TransactionalAbove\.buy: a decorator above @Locked wraps the method\..*put @Locked on top/,
      ),
    ]);
    expect(await twoBuyers(checkout)).toEqual({ answers: ['sold', 'sold'], orders: 2 });
  });

  it('@Locked above @Transactional does not: the second buyer waits for the commit and sees it', async () => {
    const checkout = await start(LockedAbove);
    expect(warnings()).toEqual([]);
    const { answers, orders } = await twoBuyers(checkout);
    expect(answers.sort()).toEqual(['sold', 'sold out']);
    expect(orders).toBe(1);
  });
});
