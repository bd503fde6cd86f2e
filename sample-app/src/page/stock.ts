import type { SaleView } from '../demo/live/snapshot.js';
import { byId, html, Keyed, set, write } from './dom.js';

const LABELS: Readonly<Record<SaleView['strategy'], string>> = {
  none: 'No lock',
  optimistic: 'Optimistic lock',
  sql: 'One UPDATE',
  locked: '@Locked',
  manual: 'LockService',
};

const ORDER = Object.keys(LABELS);

/** Returns sales in the order of their strategies. */
export const inOrder = (sales: readonly SaleView[]): SaleView[] =>
  [...sales].sort((a, b) => ORDER.indexOf(a.strategy) - ORDER.indexOf(b.strategy));

/** Returns the name of a strategy for people. */
export const labelOf = (strategy: SaleView['strategy']): string => LABELS[strategy];

const wordsOf = ({ items, sold, oversold, state }: SaleView): string => {
  if (oversold > 0) return `sold ${sold} of ${items}`;
  if (state === 'over')
    return sold === items ? `sold ${sold} of ${items}: right` : `sold ${sold} of ${items}`;
  return `left of ${items}`;
};

/** The stock of each strategy, counting down; what is sold beyond it overflows past a mark. */
export class Stock {
  private readonly list = new Keyed<SaleView, HTMLLIElement>(
    byId('stock'),
    ({ strategy }) => strategy,
    ({ strategy }) =>
      html(
        'li',
        { 'data-strategy': strategy },
        html('span', { class: 'name' }, labelOf(strategy)),
        html('span', { class: 'count' }),
        html('span', { class: 'scale', 'aria-hidden': 'true' }, html('span')),
        html('span', { class: 'words' }),
      ),
    (item, sale) => {
      const left = sale.items - sale.sold;
      set(item, {
        class: sale.oversold > 0 ? 'is-over' : left === 0 ? 'is-right' : '',
        'data-state': sale.state,
        'data-sold': sale.sold,
        'data-left': left,
        'data-refused': sale.staleWritesRefused,
      });
      const [, count, scale, words] = item.children;
      write(count!, left < 0 ? `${-left} too many` : String(left));
      write(words!, wordsOf(sale));
      const share = left < 0 ? sale.items / sale.sold : left / sale.items;
      (scale!.firstElementChild as HTMLElement).style.width = `${100 * share}%`;
    },
  );

  show(sales: readonly SaleView[]): void {
    this.list.show(sales);
  }
}
