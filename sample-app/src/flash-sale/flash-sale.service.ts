import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Locked } from 'nest-redis-lock';
import { Repository } from 'typeorm';
import { UnknownSkuError } from './flash-sale.errors.js';
import { Order } from './order.entity.js';
import { READING } from './sku-lock.js';
import { Stock } from './stock.entity.js';
import { OrderStrategy } from './strategies/order-strategy.js';

export interface SaleView {
  readonly sku: string;
  readonly remaining: number;
  readonly orders: number;
  readonly strategy: string;
}

export interface StockReport {
  readonly sku: string;
  readonly remaining: number;
  readonly paid: number;
  /** Orders whose process died before the payment. */
  readonly unpaid: number;
}

@Injectable()
export class FlashSaleService {
  constructor(
    @InjectRepository(Stock) private readonly stocks: Repository<Stock>,
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly strategy: OrderStrategy,
  ) {}

  async show(sku: string): Promise<SaleView> {
    const stock = await this.stocks.findOneBy({ sku });
    if (!stock) throw new UnknownSkuError(sku);
    const orders = await this.orders.countBy({ sku });
    return { sku, remaining: stock.remaining, orders, strategy: this.strategy.name };
  }

  /**
   * Reports what was sold, in a state between two orders. The read lock excludes writers of the sku, and any number of
   * reports may read at once.
   */
  @Locked('sku:<<sku>>', { mode: READING })
  async report(sku: string): Promise<StockReport> {
    const stock = await this.stocks.findOneBy({ sku });
    if (!stock) throw new UnknownSkuError(sku);
    const paid = await this.orders.countBy({ sku, status: 'paid' });
    const all = await this.orders.countBy({ sku });
    return { sku, remaining: stock.remaining, paid, unpaid: all - paid };
  }

  order(sku: string, userId: string): Promise<Order> {
    return this.strategy.place(sku, userId);
  }
}
