import type { Claim } from '../../core/seam/claim.js';
import type { ExtendReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { nameOf } from '../sql/names.js';
import { joined, sql, type Sql } from '../sql/sql.js';
import { bytes, nameTextOf, US, type Row } from './postgres-terms.js';

/** Returns a table of claims: name, owner, lease in µs. */
export const rowsOfClaims = (claims: readonly Claim[]): Sql => {
  const rows = claims.map(
    ({ finalKey, owner, leaseMs }) =>
      sql`(${nameOf(finalKey)}::text, ${bytes(owner)}::text, ${leaseMs * US}::bigint)`,
  );
  return sql`VALUES ${joined(rows, ', ')}`;
};

/** Returns the replies of the claims. A claim whose row has no rest in µs was skipped: others have locked it. */
export const extendRepliesOf = (claims: readonly Claim[], rows: readonly Row[]): readonly ExtendReply[] => {
  const found = new Map(rows.map(({ name, owner, left_us }) => [`${owner} ${name}`, left_us]));
  return claims.map(({ finalKey, owner }): ExtendReply => {
    const leftUs = found.get(`${owner} ${nameTextOf(finalKey)}`);
    if (leftUs === undefined) return { status: 'lost' };
    if (leftUs === null) return { status: 'failed', cause: LOCKED };
    return { status: 'held', validForMs: Math.floor(Number(leftUs) / US) };
  });
};

const LOCKED = new StoreFailure('another transaction has locked the row', 'not-executed', {
  ...{ transient: true, keyOnly: true },
});
