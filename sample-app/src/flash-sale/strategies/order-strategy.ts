import type { Order } from '../order.entity.js';

/** How an order is placed so that the rules of the sale hold. Also the injection token of the chosen one. */
export abstract class OrderStrategy {
  abstract readonly name: string;

  /** Sells one article to the user, or throws `SoldOutError`, `AlreadyOrderedError`, `UnknownSkuError`. */
  abstract place(sku: string, userId: string): Promise<Order>;
}
