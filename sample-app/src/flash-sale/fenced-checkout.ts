import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Lease } from 'nest-redis-lock';
import { Repository } from 'typeorm';
import { PaymentClient } from '../payment/payment.client.js';
import { FencedStock } from './fenced-stock.js';
import { AlreadyOrderedError, SoldOutError } from './flash-sale.errors.js';
import { Order } from './order.entity.js';
import type { StrategyName } from './strategies/strategy-names.js';

/**
 * Sells one article to one user, under the lock of its sku. Plain code, one step after the other; what makes it
 * right even when this process is killed or stopped between any two of them is their order:
 *
 * 1. **Read, and raise the fence.** From here on the database refuses every write of an earlier holder who does not
 *    know yet that the lock has passed on to us, so nothing changes behind what we have read.
 * 2. **Reserve** the article for the user, fenced. It comes before the payment: nobody pays for what is not there.
 *    Whoever dies here leaves a reserved order, which belongs to the user: the next try finds it and goes on.
 * 3. **Pay**, with the order's id as the idempotency key. The signal ends the call early when the lock is lost, but
 *    no signal reaches a process that is stopped, and whoever dies here leaves it unknown whether the customer was
 *    charged. So the next holder asks for the very same charge again, and the payment service carries it out once.
 * 4. **Confirm**, fenced.
 *
 * A lock alone would not do: it keeps the steps of two requests apart while their holders are well. The fence and
 * the key are for the ones who are not. (A shop also lets reservations of users who never come back expire; it has
 * to ask the payment service about each before it does.)
 */
@Injectable()
export class FencedCheckout {
  constructor(
    private readonly stock: FencedStock,
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly payments: PaymentClient,
  ) {}

  async sell(sku: string, userId: string, strategy: StrategyName, lease: Lease): Promise<Order> {
    const token = lease.fencingToken;

    const remaining = await this.stock.read(sku, token);
    const own = await this.orders.findOneBy({ sku, userId });
    if (own?.status === 'paid') throw new AlreadyOrderedError(sku);
    if (!own && remaining === 0) throw new SoldOutError(sku);

    const order = own ?? (await this.stock.reserve({ sku, userId, strategy }, remaining - 1, token));
    await this.payments.charge({ sku, userId, idempotencyKey: order.id, signal: lease.signal });
    return this.stock.confirm(order, token);
  }
}
