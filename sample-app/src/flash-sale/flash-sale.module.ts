import { Module, type DynamicModule, type Type } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PaymentModule } from '../payment/payment.module.js';
import { FencedCheckout } from './fenced-checkout.js';
import { FencedStock } from './fenced-stock.js';
import { FlashSaleController } from './flash-sale.controller.js';
import { FlashSaleService } from './flash-sale.service.js';
import { Order } from './order.entity.js';
import { RefusedWrite } from './refused-write.entity.js';
import { Stock } from './stock.entity.js';
import { LockedStrategy } from './strategies/locked.strategy.js';
import { ManualStrategy } from './strategies/manual.strategy.js';
import { NoneStrategy } from './strategies/none.strategy.js';
import { OptimisticStrategy } from './strategies/optimistic.strategy.js';
import { OrderStrategy } from './strategies/order-strategy.js';
import { SqlStrategy } from './strategies/sql.strategy.js';
import type { StrategyName } from './strategies/strategy-names.js';

const STRATEGIES: Record<StrategyName, Type<OrderStrategy>> = {
  none: NoneStrategy,
  optimistic: OptimisticStrategy,
  sql: SqlStrategy,
  locked: LockedStrategy,
  manual: ManualStrategy,
};

export interface FlashSaleOptions {
  readonly strategy: StrategyName;
  readonly paymentUrl: string;
}

@Module({})
export class FlashSaleModule {
  static forRoot({ strategy, paymentUrl }: FlashSaleOptions): DynamicModule {
    return {
      module: FlashSaleModule,
      imports: [TypeOrmModule.forFeature([Stock, Order, RefusedWrite]), PaymentModule.forRoot(paymentUrl)],
      controllers: [FlashSaleController],
      providers: [
        FlashSaleService,
        FencedCheckout,
        FencedStock,
        { provide: OrderStrategy, useClass: STRATEGIES[strategy] },
      ],
    };
  }
}
