export { fenceTransaction } from './fence-transaction.js';
export { FENCING_MIGRATIONS, migrateFencing, sweepFences, type SweepOptions } from './fence-table.js';
export type { FencingDialect } from './fence-dialects.js';
export type { FencingOptions } from './fencing-options.js';
export type { FencingRow, FencingTransaction, RunStatement } from './transactions.js';
