import type { FencedStock } from '../flash-sale/fenced-stock.js';
import { tell, type Leave } from './part-process.js';

/**
 * Makes this instance ask the starting process before it reserves an article, and tell when that is over. While it
 * waits it has read and not yet written: the moment in which a process that stands still does harm.
 */
export const askBeforeWriting = (stock: FencedStock): void => {
  const waiting = new Map<number, () => void>();
  process.on('message', ({ token }: Leave) => {
    waiting.get(token)?.();
    waiting.delete(token);
  });
  const reserve = stock.reserve.bind(stock);
  stock.reserve = async (order, left, token) => {
    await new Promise<void>((resolve) => {
      waiting.set(token, resolve);
      tell({ type: 'about-to-write', left, token });
    });
    try {
      return await reserve(order, left, token);
    } finally {
      tell({ type: 'wrote', token });
    }
  };
};
