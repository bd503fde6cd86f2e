import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { DataSource, MoreThan, QueryFailedError, Repository } from 'typeorm';
import { PaymentClient } from '../../payment/payment.client.js';
import { AlreadyOrderedError, SoldOutError, UnknownSkuError } from '../flash-sale.errors.js';
import { Order } from '../order.entity.js';
import { Stock } from '../stock.entity.js';
import { OrderStrategy } from './order-strategy.js';

const UNIQUE_VIOLATION = '23505';

const isDuplicate = (error: unknown): boolean =>
  error instanceof QueryFailedError && (error.driverError as { code?: unknown }).code === UNIQUE_VIOLATION;

/**
 * Sells with one conditional UPDATE and a unique constraint. It is the simplest and fastest way. If one statement is
 * all the work, use this instead of a lock.
 *
 * The database cannot cover the payment, which is elsewhere. A process that dies between the order and the charge
 * leaves an order with an unknown payment. So this strategy promises only correct stock and orders, not that every
 * order is paid exactly once.
 */
@Injectable()
export class SqlStrategy extends OrderStrategy {
  readonly name = 'sql';

  constructor(
    private readonly database: DataSource,
    @InjectRepository(Stock) private readonly stocks: Repository<Stock>,
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly payments: PaymentClient,
  ) {
    super();
  }

  async place(sku: string, userId: string): Promise<Order> {
    const order = await this.reserve(sku, userId);
    if (!order) {
      if (await this.stocks.existsBy({ sku })) throw new SoldOutError(sku);
      throw new UnknownSkuError(sku);
    }
    await this.payments.charge({ sku, userId });
    await this.orders.update({ id: order.id }, { status: 'paid' });
    return { ...order, status: 'paid' };
  }

  /**
   * Resolves with undefined when nothing is left. The transaction only ties the order to the UPDATE, which decides by
   * itself.
   */
  private async reserve(sku: string, userId: string): Promise<Order | undefined> {
    try {
      return await this.database.transaction(async (tx) => {
        const taken = await tx.update(
          Stock,
          { sku, remaining: MoreThan(0) },
          { remaining: () => 'remaining - 1' },
        );
        if (taken.affected === 0) return undefined;
        const order = tx.create(Order, {
          id: randomUUID(),
          sku,
          userId,
          strategy: this.name,
          status: 'reserved',
        });
        await tx.insert(Order, order);
        return order;
      });
    } catch (error) {
      if (isDuplicate(error)) throw new AlreadyOrderedError(sku);
      throw error;
    }
  }
}
