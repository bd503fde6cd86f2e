import type { StrategyName } from '../flash-sale/strategies/strategy-names.js';
import type { Facts } from './sales.js';

export interface Sale {
  readonly facts: Facts;
  readonly items: number;
  readonly buyers: number;
}

/** Rules of the sale. Each returns how it was broken, in words, or false. */
const RULES = {
  notOversold: ({ facts, items }: Sale) =>
    facts.oversold > 0 && `sold ${facts.sold} of ${items} items, ${facts.oversold} too many`,
  notUndersold: ({ facts, items, buyers }: Sale) =>
    facts.sold < Math.min(items, buyers) &&
    `sold only ${facts.sold} of ${items} items, though there were buyers`,
  oneOrderEach: ({ facts }: Sale) =>
    facts.doubleOrders > 0 && `${facts.doubleOrders} customers have more than one order`,
  chargedOnce: ({ facts }: Sale) =>
    facts.chargedTwice > 0 && `${facts.chargedTwice} customers were charged more than once`,
  everyOrderPaid: ({ facts }: Sale) =>
    facts.unpaid + facts.chargedForNothing > 0 &&
    `${facts.unpaid} orders were never paid, ${facts.chargedForNothing} customers paid without an order`,
};

type Rule = keyof typeof RULES;

/** Promises of each strategy. `sql` promises nothing about payments, `optimistic` nothing about crashes in between. */
const PROMISES: Readonly<Record<StrategyName, readonly Rule[]>> = {
  none: [],
  optimistic: ['notOversold', 'notUndersold', 'oneOrderEach', 'chargedOnce'],
  sql: ['notOversold', 'notUndersold', 'oneOrderEach'],
  locked: ['notOversold', 'notUndersold', 'oneOrderEach', 'chargedOnce', 'everyOrderPaid'],
  manual: ['notOversold', 'notUndersold', 'oneOrderEach', 'chargedOnce', 'everyOrderPaid'],
};

/** Rules that `none` has to break; otherwise the load was too small to show anything. */
const SHOWN_BY_NONE: readonly Rule[] = ['notOversold', 'oneOrderEach', 'chargedOnce'];

/** Returns what went wrong with a sale, in words; empty when all is well. */
export const complaints = (strategy: StrategyName, sale: Sale): string[] => {
  if (strategy !== 'none') return PROMISES[strategy].flatMap((rule) => RULES[rule](sale) || []);
  return SHOWN_BY_NONE.every((rule) => RULES[rule](sale))
    ? []
    : ['did not break every rule, so this load shows nothing; try more buyers'];
};
