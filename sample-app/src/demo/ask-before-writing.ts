import type { FencedStock } from '../flash-sale/fenced-stock.js';
import { report, type Leave } from './part-process.js';

/**
 * Makes this instance ask the starting process before it reserves an article, and report the end of the write.
 * Meanwhile it has read and not yet written: a process that is stopped at this point causes a stale write.
 */
export const askBeforeWriting = (stock: FencedStock): void => {
  const waiting = new Map<number, () => void>();
  process.on('message', ({ token }: Leave) => {
    waiting.get(token)?.();
    waiting.delete(token);
  });
  const reserve = stock.reserve.bind(stock);
  stock.reserve = async (order, left, lease) => {
    const token = lease.fencingToken;
    await new Promise<void>((resolve) => {
      waiting.set(token, resolve);
      report({ type: 'about-to-write', left, token });
    });
    try {
      return await reserve(order, left, lease);
    } finally {
      report({ type: 'wrote', token });
    }
  };
};
