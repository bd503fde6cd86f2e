// The app that pages talk about without showing it.
import { Injectable } from '@nestjs/common';
import { Locked } from 'nest-redis-lock';

export interface OrderDto {
  readonly sku: string;
  readonly pieces: number;
}

@Injectable()
export class StockRepository {
  async reserve({ sku }: OrderDto): Promise<string> {
    return `order of ${sku}`;
  }

  async report(): Promise<void> {}
}

@Injectable()
export class PaymentClient {
  async charge(_order: string): Promise<void> {}
}

export const stock = new StockRepository();
export const payments = new PaymentClient();

@Injectable()
export class ShopService {
  constructor(private readonly stock: StockRepository) {}

  @Locked('sku:<<dto.sku>>', { waitMs: 2_000 })
  async order(dto: OrderDto): Promise<void> {
    await payments.charge(await this.stock.reserve(dto));
  }
}
