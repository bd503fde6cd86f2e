import { createHash } from 'node:crypto';
import { fencedError } from '../core/errors/error-messages.js';
import { LockConfigurationError, LockError, withLabel } from '../core/errors/lock.errors.js';
import { formatValue } from '../core/util/describe.js';
import { fences as channel, type FenceMessage } from '../core/context/telemetry.js';
import { Lease } from '../core/lease/lease.js';
import type { LeasePart } from '../core/lease/lease-part.js';
import { DIALECTS, type DialectSql } from './fence-dialects.js';
import { dialectOf, resolveFencing, type FencingOptions } from './fencing-options.js';
import { statementsOf, type FencingRow, type FencingTransaction, type Statements } from './transactions.js';

/** One row of the table: the fence of one key. */
interface Fence {
  readonly name: string;
  readonly token: number;
  readonly part: LeasePart;
  readonly lease: Lease;
}

/** Names that every database stores and compares alike, whatever its encoding and collation. */
const PLAIN_NAME = /^(?!sha256:)[\x20-\x7e]{1,500}$/;

/** How the databases, and Prisma in their place, say that a table is missing. */
const MISSING = /42P01|ER_NO_SUCH_TABLE|no such table|P2010.*(?:does not|doesn't) exist/s;

/** Returns the name of a key in the table: the final key, or a hash of it. */
const nameOf = (finalKey: string): string =>
  PLAIN_NAME.test(finalKey) ? finalKey : `sha256:${createHash('sha256').update(finalKey).digest('hex')}`;

/** Returns the fences of a lease in the order of its keys, which are sorted: two transactions cannot deadlock. */
const fencesOf = (lease: unknown): readonly Fence[] => {
  if (!(lease instanceof Lease)) {
    throw new LockConfigurationError(
      `fenceTransaction needs a lease, but got ${formatValue(lease)}. Pass the lease of withLock or acquire, or ` +
        'currentLease(); of withLocks, each lease of its parts.',
    );
  }
  return lease.parts.map((part) => ({
    name: nameOf(part.finalKey),
    token: lease.tokenFor(part.key),
    part,
    lease,
  }));
};

/** Returns the rows of a result. Rows of another form would let every token pass. */
const checkedRows = (rows: unknown): readonly FencingRow[] => {
  if (Array.isArray(rows) && rows.every((row: FencingRow) => typeof row?.['name'] === 'string'))
    return rows as FencingRow[];
  throw new LockConfigurationError(
    'fenceTransaction got no rows from the transaction: its statements must return an array of objects with the ' +
      'columns that they select.',
  );
};

const noTransaction = (what: string): LockConfigurationError =>
  new LockConfigurationError(
    `fenceTransaction was given ${what}, where each statement has a transaction of its own: it protects nothing. ` +
      'Begin a transaction, and pass that.',
  );

const inSavepoint = (): LockConfigurationError =>
  new LockConfigurationError(
    'fenceTransaction was called in a savepoint, as a nested transaction is: without the savepoint, the rest would commit unfenced. ' +
      'Call it in the outermost transaction, before the savepoint.',
  );

/** Throws an error of the database again, as a LockConfigurationError if the table is missing. */
const missingTable = (table: string, cause: unknown): never => {
  const { code, message = '' } = cause as { code?: unknown; message?: string };
  if (cause instanceof LockError || !MISSING.test(`${String(code)} ${message}`)) throw cause;
  throw new LockConfigurationError(
    `fenceTransaction found no table ${table}. Create it in a migration: run migrateFencing, with the same options.`,
    { cause },
  );
};

/** Reads the stored fences by name. */
const read = async (
  { query }: Statements,
  sql: DialectSql,
  table: string,
  fences: readonly Fence[],
): Promise<ReadonlyMap<unknown, number>> => {
  const rows = checkedRows(
    await query(
      sql.read(table, fences.length),
      fences.map(({ name }) => name),
    ),
  );
  return new Map(rows.map(({ name, fence }) => [name, Number(fence)]));
};

/** Raises the fences, and throws for the first one that a later holder has raised further. */
const raise = async (
  statements: Statements,
  sql: DialectSql,
  table: string,
  fences: readonly Fence[],
  message: Partial<FenceMessage>,
): Promise<void> => {
  const { query, execute = query } = statements;
  const text = sql.upsert(table, fences.length);
  const values = fences.flatMap(({ name, token }) => [name, token]);
  let late: Fence | undefined;
  let stored: ReadonlyMap<unknown, number> = new Map();
  if (sql.refuses) {
    const rows = checkedRows(await query(text, values));
    if (rows.some(({ savepoint }) => savepoint === 'yes')) throw inSavepoint();
    const raised = new Set(rows.map(({ name }) => name));
    late = fences.find(({ name }) => !raised.has(name));
    if (late) stored = await read(statements, sql, table, [late]);
  } else {
    await execute(text, values);
    stored = await read(statements, sql, table, fences);
    // Not `>`: a missing or unreadable fence counts as a later one.
    late = fences.find(({ name, token }) => !(stored.get(name)! <= token));
  }
  if (statements.inTransaction?.() === false) throw noTransaction('a connection without an open transaction');
  if (message.isRefused) late ??= fences[0];
  if (late) {
    const { key, hold, label } = late.part;
    const error = fencedError(late.lease.shown(key), hold.claim, late.token, stored.get(late.name));
    throw withLabel(error, label);
  }
};

/**
 * Lets the transaction commit only if no later holder of the lock was in the database before. Call it as the first
 * statement of the transaction. It raises the fence of each key of the lease in the table `lock_fence`. The rows stay
 * locked until the transaction ends, so that two processes that both believe to hold the lock commit one after the
 * other, in the order of their tokens.
 *
 * In `withLock` the lease is the argument of the section. In a `@Locked` method, call `currentLease()` in the first line,
 * outside of every callback: in a task of a shared queue it can be the lease of another call.
 *
 * @throws LockLostError with the reason `fenced` if a later holder was there: let it roll the transaction back
 * @throws LockConfigurationError for an object that is no transaction, in a savepoint where that is known, for a lease
 * without a token, for a missing table, and for invalid options. Another error of the database is passed on as it is.
 *
 * @example
 * const lease = currentLease();
 * await dataSource.transaction(async (tx) => {
 *   await fenceTransaction(tx, lease);
 *   await tx.decrement(Stock, { sku }, 'remaining', 1);
 * });
 */
export const fenceTransaction = (
  tx: FencingTransaction,
  lease: Lease,
  options: FencingOptions = {},
): Promise<void> => {
  if (!channel.hasSubscribers) return fence(tx, lease, options);
  const message: FenceMessage = { lease };
  return channel.tracePromise(() => fence(tx, lease, options, message), message);
};

const fence = async (
  tx: FencingTransaction,
  lease: Lease,
  options: FencingOptions,
  message: Partial<FenceMessage> = {},
): Promise<void> => {
  const { table, dialect } = resolveFencing('fenceTransaction', options);
  const fences = fencesOf(lease);
  const statements = statementsOf('fenceTransaction', tx);
  if (statements.outside !== undefined) throw noTransaction(statements.outside);
  if (statements.inSavepoint) throw inSavepoint();
  const sql = DIALECTS[dialectOf('fenceTransaction', statements, dialect)];
  await raise(statements, sql, table, fences, message).catch((error: unknown) => missingTable(table, error));
};
