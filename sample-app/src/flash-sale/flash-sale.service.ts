import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { UnknownSkuError } from './flash-sale.errors.js';
import { Order } from './order.entity.js';
import { Stock } from './stock.entity.js';
import { OrderStrategy } from './strategies/order-strategy.js';

export interface SaleView {
  readonly sku: string;
  readonly remaining: number;
  readonly orders: number;
  readonly strategy: string;
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

  order(sku: string, userId: string): Promise<Order> {
    return this.strategy.place(sku, userId);
  }
}
