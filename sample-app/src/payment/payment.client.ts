import { BadGatewayException, Inject, Injectable } from '@nestjs/common';
import { Limited } from 'nest-redis-lock';

/** Injection token of the payment service's address. */
export const PAYMENT_URL = Symbol('PAYMENT_URL');

/** The payment service takes so many charges at once, from all instances of the shop together. */
export const MOST_CHARGES_AT_ONCE = 8;

/** The key of the permits to charge. */
export const CHARGES = 'payments';

export interface ChargeRequest {
  readonly sku: string;
  readonly userId: string;
  /** Charges with the same key are carried out once; a repetition gets the answer of the first. */
  readonly idempotencyKey?: string;
  /** Gives the call up. Whether the customer was charged is unknown then. */
  readonly signal?: AbortSignal;
}

/** Calls the payment service, which is another process and knows nothing of our database. */
@Injectable()
export class PaymentClient {
  constructor(@Inject(PAYMENT_URL) private readonly url: string) {}

  /**
   * Charges a customer. Whoever is one too many waits for a permit. The permit of an instance that dies here comes back
   * with its lease; until then the others have one less.
   */
  @Limited(CHARGES, { permits: MOST_CHARGES_AT_ONCE })
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
