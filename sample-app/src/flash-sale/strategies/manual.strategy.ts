import { Injectable } from '@nestjs/common';
import { LockService, lockKey } from 'nest-redis-lock';
import { FencedCheckout } from '../fenced-checkout.js';
import type { Order } from '../order.entity.js';
import { SELLING } from '../sku-lock.js';
import { OrderStrategy } from './order-strategy.js';

/** Acquires the same lock as `locked`, with `LockService`. */
@Injectable()
export class ManualStrategy extends OrderStrategy {
  readonly name = 'manual';

  constructor(
    private readonly checkout: FencedCheckout,
    private readonly locks: LockService,
  ) {
    super();
  }

  place(sku: string, userId: string): Promise<Order> {
    const key = lockKey('sku:<<sku>>', { sku });
    return this.locks.withLock(key, { mode: SELLING }, (lease) =>
      this.checkout.sell(sku, userId, this.name, lease),
    );
  }
}
