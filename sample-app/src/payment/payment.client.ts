import { BadGatewayException, Inject, Injectable } from '@nestjs/common';
import { Limited } from 'nest-redis-lock';
import { hasPermits } from '../lock-place.js';

/** Injection token of the payment service's address. */
export const PAYMENT_URL = Symbol('PAYMENT_URL');

/** Number of charges that the payment service takes at once, from all instances of the shop together. */
export const MAX_CHARGES_AT_ONCE = 8;

/** Key of the permits to charge. */
export const CHARGES = 'payments';

export interface ChargeRequest {
  readonly sku: string;
  readonly userId: string;
  /** Charges with the same key are executed once; a repetition gets the first result. */
  readonly idempotencyKey?: string;
  /** Signal that ends the call. It is unknown then whether the customer was charged. */
  readonly signal?: AbortSignal;
}

type ChargeDecorator = (
  target: object,
  name: string,
  charge: TypedPropertyDescriptor<(request: ChargeRequest) => Promise<void>>,
) => void;

/** Limits the charges in progress. In a store without permits it does nothing. */
const LimitedCharges: ChargeDecorator = hasPermits(process.env['LOCK_STORE'] ?? 'redis')
  ? Limited(CHARGES, { permits: MAX_CHARGES_AT_ONCE })
  : () => undefined;

/** Client of the payment service, another process that does not know our database. */
@Injectable()
export class PaymentClient {
  constructor(@Inject(PAYMENT_URL) private readonly url: string) {}

  /**
   * Charges a customer. If too many charges are in progress, it waits for a permit. The permit of an instance that dies
   * here expires with its lease; until then there is one permit less.
   */
  @LimitedCharges
  async charge({ sku, userId, idempotencyKey, signal }: ChargeRequest): Promise<void> {
    const answer = await fetch(`${this.url}/charges`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body: JSON.stringify({ sku, customer: userId }),
      signal,
    });
    await answer.arrayBuffer();
    if (!answer.ok) throw new BadGatewayException(`The payment service answered ${answer.status}.`);
  }
}
