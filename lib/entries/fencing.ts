export { fenceTransaction } from '../fencing/fence-transaction.js';
export {
  FENCING_MIGRATIONS,
  migrateFencing,
  sweepFences,
  type SweepOptions,
} from '../fencing/fence-table.js';
export type { FencingDialect } from '../fencing/fence-dialects.js';
export type { FencingOptions } from '../fencing/fencing-options.js';
export type { FencingRow, FencingTransaction, RunStatement } from '../fencing/transactions.js';
