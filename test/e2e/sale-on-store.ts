import { expect } from 'vitest';
import type { SaleReport } from '../../sample-app/src/demo/run-sale.js';
import { FlashSaleCli } from './flash-sale-cli.js';

const ITEMS = 20;

/** What a sale without a mistake has done. */
export const SOLD_OUT = {
  ...{ sold: ITEMS, oversold: 0, doubleOrders: 0 },
  ...{ chargedTwice: 0, unpaid: 0, chargedForNothing: 0 },
};

interface Result {
  readonly locks: string;
  readonly reports: readonly SaleReport[];
}

/** Runs the sale to its end, without a complaint and without a password in its output. */
export const runSale = async (args: readonly string[], env?: Record<string, string>): Promise<Result> => {
  const cli = new FlashSaleCli(
    ['--all', ...args, '--buyers', '300', '--items', String(ITEMS), '--json'],
    env,
  );
  const code = await cli.exitCode();
  // When there is no result, stderr says why.
  expect(cli.stdout, cli.stderr).not.toBe('');
  const result = JSON.parse(cli.stdout) as Result;
  expect(cli.stdout + cli.stderr).not.toContain('secret');
  expect(result.reports.flatMap(({ complaints }) => complaints)).toEqual([]);
  expect(code, cli.stderr).toBe(0);
  return result;
};
