import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { PaymentClient } from '../../payment/payment.client.js';
import { AlreadyOrderedError, SoldOutError, UnknownSkuError } from '../flash-sale.errors.js';
import { Order } from '../order.entity.js';
import { Stock } from '../stock.entity.js';
import { OrderStrategy } from './order-strategy.js';

/** Reads, pays and writes without any protection. Correct only for one buyer at a time. */
@Injectable()
export class NoneStrategy extends OrderStrategy {
  readonly name = 'none';

  constructor(
    @InjectRepository(Stock) private readonly stocks: Repository<Stock>,
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly payments: PaymentClient,
  ) {
    super();
  }

  async place(sku: string, userId: string): Promise<Order> {
    const stock = await this.stocks.findOneBy({ sku });
    if (!stock) throw new UnknownSkuError(sku);
    if (await this.orders.existsBy({ sku, userId })) throw new AlreadyOrderedError(sku);
    if (stock.remaining <= 0) throw new SoldOutError(sku);

    await this.payments.charge({ sku, userId });

    await this.stocks.update({ sku }, { remaining: stock.remaining - 1 });
    const order = this.orders.create({ id: randomUUID(), sku, userId, strategy: this.name, status: 'paid' });
    await this.orders.insert(order);
    return order;
  }
}
