import { DataSource } from 'typeorm';
import { migrateFencing } from 'nest-redis-lock/fencing';
import { fenceTable, flashSaleDatabase } from '../flash-sale/flash-sale.database.js';
import { Order } from '../flash-sale/order.entity.js';
import { RefusedWrite } from '../flash-sale/refused-write.entity.js';
import { Stock } from '../flash-sale/stock.entity.js';

/** What happened, according to the database and the payment service. */
export interface Facts {
  readonly sold: number;
  readonly oversold: number;
  /** Number of customers with more than one order. */
  readonly doubleOrders: number;
  /** Number of customers that were charged more than once. */
  readonly chargedTwice: number;
  /** Number of customers that were charged without an order. */
  readonly chargedForNothing: number;
  /** Number of orders that were not paid in the end. */
  readonly unpaid: number;
  readonly staleWritesRefused: number;
  /** Longest time without a sale, between the first and the last one, in ms. */
  readonly longestOutageMs: number;
}

const moreThanOne = (counts: Map<string, number>): number =>
  [...counts.values()].filter((times) => times > 1).length;

const longestGap = (times: readonly number[]): number =>
  times.reduce((longest, time, index) => Math.max(longest, time - (times[index - 1] ?? time)), 0);

/** Sales of one run: creates their tables, puts articles on sale, reads the results. */
export class Sales implements AsyncDisposable {
  private constructor(
    private readonly database: DataSource,
    private readonly paymentUrl: string,
  ) {}

  static async open(databaseUrl: string, namespace: string, paymentUrl: string): Promise<Sales> {
    const database = await new DataSource(flashSaleDatabase(databaseUrl, namespace)).initialize();
    await database.synchronize();
    await migrateFencing(database, { table: fenceTable(database) });
    return new Sales(database, paymentUrl);
  }

  async putOnSale(sku: string, items: number): Promise<void> {
    await this.database.getRepository(Stock).insert({ sku, remaining: items });
  }

  async facts(sku: string, items: number): Promise<Facts> {
    const orders = await this.database
      .getRepository(Order)
      .find({ where: { sku }, order: { createdAt: 'ASC' } });
    const charges = await this.charges(sku);
    const customers = new Map<string, number>();
    for (const { userId } of orders) customers.set(userId, (customers.get(userId) ?? 0) + 1);
    return {
      sold: orders.length,
      oversold: Math.max(0, orders.length - items),
      doubleOrders: moreThanOne(customers),
      chargedTwice: moreThanOne(charges),
      chargedForNothing: [...charges.keys()].filter((customer) => !customers.has(customer)).length,
      unpaid: orders.filter((order) => order.status !== 'paid' || !charges.has(order.userId)).length,
      staleWritesRefused: await this.database.getRepository(RefusedWrite).countBy({ sku }),
      longestOutageMs: longestGap(orders.map((order) => order.createdAt.getTime())),
    };
  }

  /** Resolves with the number of orders at this moment, as `facts` reports it at the end. */
  sold(sku: string): Promise<number> {
    return this.database.getRepository(Order).countBy({ sku });
  }

  /** Resolves with the highest fencing token of a transaction. */
  async fence(sku: string): Promise<number> {
    const [row] = await this.database.query<{ fence: string | null }[]>(
      `SELECT max(fence) AS fence FROM ${fenceTable(this.database)} WHERE name LIKE '%:' || $1`,
      [sku],
    );
    return Number(row?.fence);
  }

  /** Drops the tables of this run. */
  async [Symbol.asyncDispose](): Promise<void> {
    const runner = this.database.createQueryRunner();
    const tables = this.database.entityMetadatas.map(({ tablePath }) => tablePath);
    for (const table of [...tables, fenceTable(this.database)]) await runner.dropTable(table, true);
    await runner.release();
    await this.database.destroy();
  }

  private async charges(sku: string): Promise<Map<string, number>> {
    const answer = await fetch(`${this.paymentUrl}/charges/${encodeURIComponent(sku)}`);
    return new Map(Object.entries((await answer.json()) as Record<string, number>));
  }
}
