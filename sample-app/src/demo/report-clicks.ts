import { type FencedCheckout } from '../flash-sale/fenced-checkout.js';
import { type FlashSaleService } from '../flash-sale/flash-sale.service.js';
import { type FencedStock } from '../flash-sale/fenced-stock.js';
import { StaleWriteError } from '../flash-sale/flash-sale.errors.js';
import { clock, newId } from './live/ids.js';
import { report } from './part-process.js';

/** Minimum time between two reports of the clicks that wait, in ms. */
const PERIOD_MS = 50;
/** Number of waiting buyers that are reported by name. */
const MAX_NAMES = 3;

/** The buyers that wait in this instance. */
class Line {
  private readonly buyers = new Set<{ readonly buyer: string }>();
  private timer: NodeJS.Timeout | undefined;

  enter(buyer: string): { readonly buyer: string } {
    const click = { buyer };
    this.buyers.add(click);
    this.changed();
    return click;
  }

  leave(click: { readonly buyer: string } | undefined): void {
    if (click && this.buyers.delete(click)) this.changed();
  }

  /** Returns a click of a buyer. */
  of(buyer: string): { readonly buyer: string } | undefined {
    return [...this.buyers].find((click) => click.buyer === buyer);
  }

  private changed(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const next = [...this.buyers].slice(0, MAX_NAMES).map(({ buyer }) => buyer);
      report({ type: 'clicks', waiting: this.buyers.size, next });
    }, PERIOD_MS);
  }
}

const working = async <T>(buyer: string, token: number | undefined, work: () => Promise<T>): Promise<T> => {
  const id = newId();
  report({ type: 'began', id, buyer, token, at: clock() });
  try {
    return await work();
  } catch (error) {
    if (error instanceof StaleWriteError && token !== undefined)
      report({ type: 'refused', token, at: clock() });
    throw error;
  } finally {
    report({ type: 'ended', id, at: clock() });
  }
};

export interface Watched {
  readonly shop: FlashSaleService;
  readonly checkout: FencedCheckout;
  readonly stock: FencedStock;
}

/**
 * Reports to the starting process which clicks wait in this instance, which one it works on, and whether that gets an article. With a lock the work on a
 * click begins when it has the lock; without one, at once.
 */
export const reportClicks = ({ shop, checkout, stock }: Watched, hasLock: boolean): void => {
  const line = new Line();
  const order = shop.order.bind(shop);
  const sell = checkout.sell.bind(checkout);
  shop.order = async (sku, buyer) => {
    if (!hasLock) return working(buyer, undefined, () => order(sku, buyer));
    const click = line.enter(buyer);
    try {
      return await order(sku, buyer);
    } finally {
      line.leave(click);
    }
  };
  checkout.sell = (sku, buyer, strategy, lease) => {
    line.leave(line.of(buyer));
    return working(buyer, lease.fencingToken, () => sell(sku, buyer, strategy, lease));
  };
  const reserve = stock.reserve.bind(stock);
  stock.reserve = async (order, left, lease) => {
    const reserved = await reserve(order, left, lease);
    report({ type: 'sold', token: lease.fencingToken });
    return reserved;
  };
};
