import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { DataSource, Repository } from 'typeorm';
import { StaleWriteError, UnknownSkuError } from './flash-sale.errors.js';
import { Order } from './order.entity.js';
import { RefusedWrite } from './refused-write.entity.js';
import { Stock } from './stock.entity.js';

/**
 * Stock as the holder of its lock sees it. Every statement contains the holder's fencing token, and counts only if no
 * later holder has written. The condition is `fence <= token`, not `<`, because one holder writes several times.
 *
 * Each step is one statement, not a transaction of several. So a process that is stopped in between leaves no row lock
 * on which others would wait.
 */
@Injectable()
export class FencedStock {
  constructor(
    private readonly database: DataSource,
    @InjectRepository(Stock) private readonly stocks: Repository<Stock>,
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    @InjectRepository(RefusedWrite) private readonly refusedWrites: Repository<RefusedWrite>,
  ) {}

  /**
   * Resolves with the remaining stock, and raises the fence. If only the write raised it, an earlier holder could wake
   * up between our read and our write, and we would overwrite its sale.
   */
  async read(sku: string, token: number): Promise<number> {
    const update = await this.stocks
      .createQueryBuilder()
      .update()
      .set({ fence: token })
      .where('sku = :sku AND fence <= :token', { sku, token })
      .returning(['remaining'])
      .execute();
    const [row] = update.raw as { remaining: number }[];
    if (row) return row.remaining;
    if (!(await this.stocks.existsBy({ sku }))) throw new UnknownSkuError(sku);
    return this.refuse(sku, token, 'read');
  }

  /** Writes the new stock and the reserved order, both or none. */
  async reserve(
    order: Pick<Order, 'sku' | 'userId' | 'strategy'>,
    left: number,
    token: number,
  ): Promise<Order> {
    const reserved = this.orders.create({ ...order, id: randomUUID(), status: 'reserved' });
    const written = await this.writeFenced(
      `UPDATE ${this.stocks.metadata.tablePath} SET remaining = $3, fence = $2 WHERE sku = $1 AND fence <= $2`,
      `INSERT INTO ${this.orders.metadata.tablePath} (id, sku, user_id, strategy, status)
         SELECT $4::uuid, $1, $5, $6, $7 FROM fenced RETURNING id`,
      [order.sku, token, left, reserved.id, order.userId, order.strategy, reserved.status],
    );
    return written ? reserved : this.refuse(order.sku, token, 'reserve');
  }

  /** Marks the reserved order as paid. */
  async confirm(order: Order, token: number): Promise<Order> {
    const written = await this.writeFenced(
      `UPDATE ${this.stocks.metadata.tablePath} SET fence = $2 WHERE sku = $1 AND fence <= $2`,
      `UPDATE ${this.orders.metadata.tablePath} SET status = 'paid'
         WHERE id = $3 AND EXISTS (SELECT 1 FROM fenced) RETURNING id`,
      [order.sku, token, order.id],
    );
    return written ? { ...order, status: 'paid' } : this.refuse(order.sku, token, 'confirm');
  }

  /** Runs `write` only if `guard` still finds our fence. It is one statement, so both happen or neither. */
  private async writeFenced(guard: string, write: string, values: unknown[]): Promise<boolean> {
    const [result] = await this.database.query<{ rows: number }[]>(
      `WITH fenced AS (${guard} RETURNING sku), written AS (${write})
       SELECT count(*)::int AS rows FROM written`,
      values,
    );
    return result !== undefined && result.rows > 0;
  }

  private async refuse(sku: string, token: number, step: string): Promise<never> {
    await this.refusedWrites.insert({ sku, token, step });
    throw new StaleWriteError(sku);
  }
}
