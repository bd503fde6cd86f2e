import type { SaleView } from '../demo/live/snapshot.js';
import { byId, html, set, write } from './dom.js';
import { labelOf } from './stock.js';

interface Row {
  readonly title: string;
  readonly value: (sale: SaleView) => number;
  /** Whether anything but zero is wrong. */
  readonly isWrong?: boolean;
}

const ROWS: readonly Row[] = [
  { title: 'sold', value: ({ sold }) => sold },
  { title: 'too many', value: ({ oversold }) => oversold, isWrong: true },
  { title: 'buyers with two orders', value: ({ doubleOrders }) => doubleOrders, isWrong: true },
  { title: 'buyers that paid twice', value: ({ chargedTwice }) => chargedTwice, isWrong: true },
  { title: 'stale writes refused', value: ({ staleWritesRefused }) => staleWritesRefused },
  { title: 'longest time without a sale, s', value: ({ longestOutageMs }) => longestOutageMs / 1_000 },
];

/** Number of columns that fit beside the lanes. */
const MAX_NARROW = 2;

/** The table of all sales, as it grows: a column for each. */
export class NumbersTable {
  private readonly table = byId<HTMLTableElement>('numbers');
  private strategies: string | undefined;

  show(sales: readonly SaleView[]): void {
    const strategies = sales.map(({ strategy }) => strategy).join();
    if (strategies !== this.strategies) this.build(sales);
    this.strategies = strategies;
    ROWS.forEach(({ value, isWrong }, index) => {
      const row = this.table.tBodies[0]!.rows[index]!;
      sales.forEach((sale, column) => {
        const cell = row.cells[column + 1]!;
        const number = value(sale);
        write(cell, Number.isInteger(number) ? String(number) : number.toFixed(1));
        if (isWrong) set(cell, { class: number > 0 ? 'is-wrong' : 'is-right' });
      });
    });
  }

  private build(sales: readonly SaleView[]): void {
    // More columns need the whole width.
    set(this.table, { 'data-columns': sales.length > MAX_NARROW ? 'many' : 'few' });
    const heads = sales.map(({ strategy }) => html('th', { scope: 'col' }, labelOf(strategy)));
    this.table.replaceChildren(
      html('thead', {}, html('tr', {}, html('td'), ...heads)),
      html(
        'tbody',
        {},
        ...ROWS.map(({ title }) =>
          html('tr', {}, html('th', { scope: 'row' }, title), ...sales.map(() => html('td'))),
        ),
      ),
    );
  }
}
