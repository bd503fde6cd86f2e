import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { Runtime } from '../../core/util/runtime.js';
import type { ExclusiveClaim, PermitClaim } from '../../core/seam/claim.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { OWN_PREFIX } from '../key-rule.js';
import { MAX_BYTES } from './sql-terms.js';
import type { RunStatement, SqlDialect } from './sql-dialect.js';
import { raw, Sql, type Statement } from './sql.js';

const ALONE = { othersWait: false };

/** What begins and ends the transaction of a statement: here all of them are one. */
const TRANSACTION = /START TRANSACTION|COMMIT AND NO CHAIN NO RELEASE/g;

/**
 * Takes, extends and releases locks that no app knows, in a transaction that is rolled back. A column, a key, a trigger, a
 * policy or a right that spoils a lock shows here, and not with the first lock of the app.
 *
 * @param alone sends statements on a connection of their own
 * @param recreation statements that create the table again
 *
 * @throws {LockConfigurationError} when the table cannot keep locks
 */
export const rehearse = async (
  alone: RunStatement,
  { name, exclusive, permit }: Pick<SqlDialect, 'name' | 'exclusive' | 'permit'>,
  runtime: Runtime,
  recreation: string,
): Promise<void> => {
  const run = <T>({ sql: { texts, values }, read }: Statement<T>): Promise<T> => {
    const inside = texts.map((text) => text.replace(TRANSACTION, 'DO 0'));
    return alone({ sql: new Sql(inside, values), read });
  };
  const simple = (text: string) => alone({ sql: raw(text), read: () => undefined });
  const id = runtime.newId();
  const permits = `${OWN_PREFIX}start:${id}`;
  const text = permits.padEnd(MAX_BYTES - 2, '-');
  const key = `${text}k`;
  const [one, two] = [`${id}:1`, `${id}:2`];
  const common = { leaseMs: 60_000, waits: false };
  const lock = (owner: string, finalKey = key): ExclusiveClaim => {
    return { ...common, kind: 'exclusive', finalKey, owner, tokens: 1 };
  };
  const permitOf = (owner: string): PermitClaim => {
    return { ...common, kind: 'permit', finalKey: permits, owner, tokens: 0, of: 1 };
  };
  const acquire = async (claim: ExclusiveClaim) => (await run(exclusive.acquire(claim, ALONE))).status;
  const acquirePermit = async (owner: string) => (await run(permit.acquire(permitOf(owner), ALONE))).status;
  const fails = async (): Promise<string | undefined> => {
    if ((await acquire(lock(one))) !== 'granted') return 'a free key is taken';
    if ((await acquire(lock(two))) !== 'taken') return 'two owners get one key';
    for (const other of [`${text}K`, `${key} `])
      if ((await acquire(lock(two, other))) !== 'granted') return 'two keys are one';
    if ((await run(exclusive.extend([lock(one)])))[0]?.status !== 'held') return 'a lock cannot be extended';
    if (!(await run(exclusive.release(lock(one), {}))).wasHeld) return 'a lock cannot be released';
    if ((await acquire(lock(two))) !== 'granted') return 'a released key is taken';
    if ((await acquirePermit(one)) !== 'granted') return 'a free permit is taken';
    if ((await acquirePermit(two)) !== 'taken') return 'two owners get one permit';
    if ((await run(permit.extend([permitOf(one)])))[0]?.status !== 'held')
      return 'a permit cannot be extended';
    if (!(await run(permit.release(permitOf(one), {}))).wasHeld) return 'a permit cannot be released';
    return undefined;
  };
  let cause: Error | undefined;
  const fault = await simple('START TRANSACTION')
    .then(fails)
    .catch((failure: unknown) => {
      // Others have locked a row, or the place of a new one: that is no fault of the table.
      if (failure instanceof StoreFailure && failure.keyOnly) return undefined;
      if (!(failure instanceof StoreFailure) || failure.passing || failure.overloaded) throw failure;
      cause = failure;
      return failure.message;
    })
    .finally(() => simple('ROLLBACK').catch(() => undefined));
  if (fault === undefined) return;
  throw new LockConfigurationError(
    `The table of the locks in ${name} is not as it was created: ${fault}. ` +
      `Undo the change, or while no process uses the table, run: ${recreation}`,
    { cause },
  );
};
