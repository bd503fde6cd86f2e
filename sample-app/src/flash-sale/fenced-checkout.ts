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
 * Sells one article to one user, under the lock of its sku. The order of its steps keeps the sale correct, even if this
 * process is killed or stopped between any two of them:
 *
 * 1. **Read, and raise the fence.** Earlier holders may not know yet that the lock has passed on. From here on the
 *    database rejects their writes, so what we have read stays true.
 * 2. **Reserve** the article for the user, fenced. It comes before the payment, so that no buyer pays for a missing
 *    article. A process that dies here leaves a reserved order; the user's next try finds it and goes on.
 * 3. **Pay**, with the order's id as the idempotency key. The signal ends the call early when the lock is lost, but a
 *    stopped process gets no signal. If the process dies here, it is unknown whether the customer was charged. So the
 *    next holder requests the same charge again, and the payment service executes it once.
 * 4. **Confirm**, fenced.
 *
 * A lock alone is not enough: it separates the steps of two requests while their holders work normally. The fence and
 * the key are for holders that were stopped or killed. (A shop also lets abandoned reservations expire. It has to ask
 * the payment service about each of them first.)
 */
@Injectable()
export class FencedCheckout {
  constructor(
    private readonly stock: FencedStock,
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly payments: PaymentClient,
  ) {}

  async sell(sku: string, userId: string, strategy: StrategyName, lease: Lease): Promise<Order> {
    const remaining = await this.stock.read(sku, lease);
    const own = await this.orders.findOneBy({ sku, userId });
    if (own?.status === 'paid') throw new AlreadyOrderedError(sku);
    if (!own && remaining === 0) throw new SoldOutError(sku);

    const order = own ?? (await this.stock.reserve({ sku, userId, strategy }, remaining - 1, lease));
    await this.payments.charge({ sku, userId, idempotencyKey: order.id, signal: lease.signal });
    return this.stock.confirm(order, lease);
  }
}
