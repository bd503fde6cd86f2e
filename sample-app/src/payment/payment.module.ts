import { Module, type DynamicModule } from '@nestjs/common';
import { PAYMENT_URL, PaymentClient } from './payment.client.js';

@Module({})
export class PaymentModule {
  static forRoot(url: string): DynamicModule {
    return {
      module: PaymentModule,
      providers: [{ provide: PAYMENT_URL, useValue: url }, PaymentClient],
      exports: [PaymentClient],
    };
  }
}
