import type { Claim } from '../../core/seam/claim.js';
import type { ExtendReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { nameOf } from '../sql/names.js';
import { joined, sql, type Sql } from '../sql/sql.js';
import { bytes, rowsOf, US } from './mysql-terms.js';

/** Returns a table of claims: name, owner, lease in µs. */
export const rowsOfClaims = (claims: readonly Claim[]): Sql => {
  const rows = claims.map(({ finalKey, owner, leaseMs }, i) =>
    i === 0
      ? sql`SELECT ${nameOf(finalKey)} AS n, ${bytes(owner)} AS o, ${leaseMs * US} AS l`
      : sql`SELECT ${nameOf(finalKey)}, ${bytes(owner)}, ${leaseMs * US}`,
  );
  return joined(rows, ' UNION ALL ');
};

/**
 * Returns the replies of the claims. A row with less than its lease was skipped: others have locked it.
 *
 * @param at number of the statement whose reply has the name, the owner and the rest in µs of each row that is held
 */
export const extendRepliesOf = (
  claims: readonly Claim[],
  reply: unknown,
  at: number,
): readonly ExtendReply[] => {
  const found = new Map(
    rowsOf<{ name: Buffer; owner: Buffer; leftUs: number }>(reply, at).map(({ name, owner, leftUs }) => [
      `${name.toString('latin1')} ${owner.toString()}`,
      Number(leftUs),
    ]),
  );
  return claims.map(({ finalKey, owner, leaseMs }): ExtendReply => {
    const leftUs = found.get(`${nameOf(finalKey).toString('latin1')} ${owner}`);
    if (leftUs === undefined) return { status: 'lost' };
    if (leftUs < leaseMs * US) return { status: 'failed', cause: LOCKED };
    return { status: 'held', validForMs: Math.floor(leftUs / US) };
  });
};

const LOCKED = new StoreFailure('another transaction has the row of the lock', 'not-executed', {
  ...{ keyOnly: true, transient: true },
});
