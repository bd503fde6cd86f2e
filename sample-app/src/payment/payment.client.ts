import { BadGatewayException, Inject, Injectable } from '@nestjs/common';

/** Injection token of the payment service's address. */
export const PAYMENT_URL = Symbol('PAYMENT_URL');

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
