import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { DataSource, Repository } from 'typeorm';
import { PaymentClient } from '../../payment/payment.client.js';
import {
  AlreadyOrderedError,
  SoldOutError,
  TooContendedError,
  UnknownSkuError,
} from '../flash-sale.errors.js';
import { Order } from '../order.entity.js';
import { Stock } from '../stock.entity.js';
import { OrderStrategy } from './order-strategy.js';

const MAX_TRIES = 30;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;

/** Returns a random pause, longer after every lost race: writers that retry together lose together. */
const pauseAfter = (tries: number): number =>
  Math.random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);

/**
 * Uses a version column: a write counts only if there was no other write since the read; otherwise it reads again. The
 * order is paid after its write, by the one request whose write succeeded, so it is paid once. A process that dies in
 * between leaves an order whose payment has to be looked up at the payment service.
 */
@Injectable()
export class OptimisticStrategy extends OrderStrategy {
  readonly name = 'optimistic';

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
    await this.payments.charge({ sku, userId });
    await this.orders.update({ id: order.id }, { status: 'paid' });
    return { ...order, status: 'paid' };
  }

  private async reserve(sku: string, userId: string): Promise<Order> {
    for (let tries = 1; tries <= MAX_TRIES; tries++) {
      // Read the version first: an order that is written after this read changes it, and the write below fails.
      const stock = await this.stocks.findOneBy({ sku });
      if (!stock) throw new UnknownSkuError(sku);
      if (await this.orders.existsBy({ sku, userId })) throw new AlreadyOrderedError(sku);
      if (stock.remaining === 0) throw new SoldOutError(sku);

      const order = await this.write(stock, userId);
      if (order) return order;
      await sleep(pauseAfter(tries));
    }
    throw new TooContendedError(sku);
  }

  /** Writes stock and order in one transaction; resolves with undefined when another request was faster. */
  private write({ sku, version, remaining }: Stock, userId: string): Promise<Order | undefined> {
    return this.database.transaction(async (tx) => {
      const { affected } = await tx.update(Stock, { sku, version }, { remaining: remaining - 1 });
      if (affected === 0) return undefined;
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
  }
}
