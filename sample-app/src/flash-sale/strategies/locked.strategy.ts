import { Injectable } from '@nestjs/common';
import { currentLease, Locked } from 'nest-redis-lock';
import { FencedCheckout } from '../fenced-checkout.js';
import type { Order } from '../order.entity.js';
import { SELLING } from '../sku-lock.js';
import { OrderStrategy } from './order-strategy.js';

/** Lets one buyer of a sku in at a time, across all instances, and no report meanwhile: the lock as a decorator. */
@Injectable()
export class LockedStrategy extends OrderStrategy {
  readonly name = 'locked';

  constructor(private readonly checkout: FencedCheckout) {
    super();
  }

  @Locked('sku:<<sku>>', { mode: SELLING })
  place(sku: string, userId: string): Promise<Order> {
    const lease = currentLease();
    return this.checkout.sell(sku, userId, this.name, lease);
  }
}
