import type { Order } from '../order.entity.js';

/**
 * Way of placing an order so that the rules of the sale hold. The class is the injection token of the chosen strategy.
 */
export abstract class OrderStrategy {
  abstract readonly name: string;

  /** Sells one article to the user, or throws `SoldOutError`, `AlreadyOrderedError`, `UnknownSkuError`. */
  abstract place(sku: string, userId: string): Promise<Order>;
}
