import type { Numbers } from '../../../lib/stores/memory/kinds/numbers.js';
import type { NumberCommand } from './commands.js';

/** What the scripts of semaphores and latches do. */
export const useNumber = (numbers: Numbers, { key, what, amount }: NumberCommand): number | boolean => {
  const number = numbers.get(key);
  const become = (next: number | undefined, notifies: boolean): true => {
    numbers.set(key, next);
    if (notifies) numbers.announce(key);
    return true;
  };
  switch (what) {
    case 'look':
      return number ?? 0;
    case 'set':
      return number === undefined && become(amount, true);
    case 'take':
      return number !== undefined && number >= amount && become(number - amount, false);
    case 'add':
      return become((number ?? 0) + amount, true);
    case 'drain':
      if (number !== undefined) become(0, false);
      return number ?? 0;
    case 'countDown':
      return number === undefined || become(number > 1 ? number - 1 : undefined, number <= 1);
    case 'remove':
      return number !== undefined && become(undefined, true);
  }
};
