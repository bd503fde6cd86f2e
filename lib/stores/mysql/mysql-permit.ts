import { NO_NUMBER_OF_PERMITS } from '../../core/kinds/permit.kind.js';
import type { PermitClaim } from '../../core/seam/claim.js';
import type { ReleaseOptions } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { raw, sql, type Sql, type Statement, type Together } from '../sql/sql.js';
import type { Sight } from '../sql/places.js';
import type { KindStatements, Waiting } from '../sql/sql-dialect.js';
import {
  bytes,
  HEAD,
  listOf,
  msOf,
  nameOf,
  nameTextOf,
  releasedRow,
  repliesOf,
  US,
} from '../sql/sql-terms.js';
import {
  COMMIT,
  extended,
  idOf,
  joinedByName,
  MAX_QUEUE,
  NOW,
  peeked,
  READ_ONLY,
  rowsOf,
  rowsOfClaims,
  textRowsOf,
  type MysqlNames,
  type ResultSetHeader,
} from './mysql-terms.js';

const LIVE_PERMITS = sql`kind = 'permit' AND until > ${NOW}`;
const MEMBER = raw("member > ''");

interface State {
  readonly kind: Buffer;
  readonly leftUs: number;
  readonly mine: number;
  readonly soonestUs: number | null;
}

/**
 * Permits in MySQL and MariaDB: a row for each permit that is held, beside the row of the key. Each transaction locks
 * the row of the key first, so it counts what is there. That row lives as long as the longest lease so far: until then
 * the number of permits is remembered, and the key is no exclusive lock.
 */
export class MysqlPermit implements KindStatements<PermitClaim> {
  readonly releases: Together<PermitClaim, ReleaseReply> = { many: (claims) => this.releaseAll(claims) };

  constructor(private readonly names: MysqlNames) {}

  /**
   * Replies: the second statement returns the number of permits before as its LAST_INSERT_ID, the sixth one the state of
   * the key.
   */
  acquire(
    { finalKey, owner, leaseMs, of, waits }: PermitClaim,
    { othersWait }: Waiting,
  ): Statement<AcquireReply> {
    const { table, me } = this.names;
    const name = nameOf(finalKey);
    const [who, lease] = [bytes(owner), leaseMs * US];
    const appended = waits
      ? sql`IF(LOCATE(${me}, queue) = 0 AND LENGTH(queue) < ${MAX_QUEUE}, CONCAT(queue, ${me}), queue)`
      : raw('queue');
    const leaves = othersWait ? raw('FALSE') : sql`LOCATE(${me}, queue) > 0`;
    const head =
      of === undefined
        ? sql`UPDATE ${table} SET permits = LAST_INSERT_ID(permits), queue = ${appended}, until = GREATEST(until, ${NOW} + ${lease})
WHERE name = ${name} AND ${HEAD} AND ${LIVE_PERMITS}`
        : sql`INSERT INTO ${table} (name, member, kind, owner, since, until, fence, permits)
VALUES (${name}, '', 'permit', '', ${NOW}, ${NOW} + ${lease}, ${NOW}, LAST_INSERT_ID(${of}))
ON DUPLICATE KEY UPDATE
permits = IF(${LIVE_PERMITS}, LAST_INSERT_ID(permits) * 0 + VALUES(permits), IF(until <= ${NOW}, LAST_INSERT_ID(VALUES(permits)), permits)),
queue = IF(until <= ${NOW}, '', ${appended}),
owner = IF(until <= ${NOW}, '', owner),
since = IF(until <= ${NOW}, VALUES(since), since),
kind = IF(until <= ${NOW}, 'permit', kind),
until = IF(kind = 'permit' OR until <= ${NOW}, GREATEST(until, VALUES(until)), until)`;
    return {
      sql: sql`START TRANSACTION;
${head};
DELETE FROM ${table} WHERE name = ${name} AND ${MEMBER} AND until <= ${NOW};
INSERT INTO ${table} (name, member, kind, owner, since, until)
SELECT h.name, ${who}, 'permit', ${who}, ${NOW}, ${NOW} + ${lease} FROM ${table} h
WHERE h.name = ${name} AND h.member = '' AND h.kind = 'permit' AND h.until > ${NOW} AND (
  (SELECT COUNT(*) FROM ${table} m WHERE m.name = ${name} AND m.member > '') < h.permits
  OR EXISTS (SELECT 1 FROM ${table} o WHERE o.name = ${name} AND o.member = ${who}))
ON DUPLICATE KEY UPDATE until = VALUES(until);
UPDATE ${table} SET queue = REPLACE(queue, ${me}, '') WHERE ROW_COUNT() > 0 AND name = ${name} AND ${HEAD} AND ${leaves};
SELECT h.kind, h.until - ${NOW} AS leftUs, (SELECT COUNT(*) FROM ${table} o WHERE o.name = ${name} AND o.member = ${who}) AS mine,
(SELECT MIN(m.until) FROM ${table} m WHERE m.name = ${name} AND m.member > '') - ${NOW} AS soonestUs
FROM ${table} h WHERE h.name = ${name} AND h.member = '';
${COMMIT}`,
      read: (reply) => {
        const before = Number(idOf((reply as ResultSetHeader[])[1]));
        const [state] = rowsOf<State>(reply, 5);
        const live = state && state.leftUs > 0 ? state : undefined;
        const isPermit = live?.kind.toString() === 'permit';
        const limit = isPermit && of !== undefined && before !== of ? { limitBefore: before } : {};
        if (isPermit && live.mine > 0) return { status: 'granted', validForMs: leaseMs, ...limit };
        if (live && !isPermit) return { status: 'taken', retryInMs: msOf(live.leftUs), heldAs: 'exclusive' };
        // The lease was over before the transaction.
        if (!live && of !== undefined) return { status: 'taken', retryInMs: 0 };
        if (!live)
          throw new StoreFailure(NO_NUMBER_OF_PERMITS, 'not-executed', { keyOnly: true, claimOnly: true });
        const { soonestUs } = live;
        return {
          status: 'taken',
          retryInMs: soonestUs === null ? Infinity : msOf(soonestUs),
          ...limit,
        };
      },
    };
  }

  release({ finalKey, owner }: PermitClaim, { keepForMs }: ReleaseOptions): Statement<ReleaseReply> {
    const { table } = this.names;
    const name = nameOf(finalKey);
    const member = sql`name = ${name} AND member = ${bytes(owner)} AND until > ${NOW}`;
    const waiting = sql`SELECT REPLACE(queue, ${this.names.me}, '') <> '' AS waiting FROM ${table} WHERE name = ${name} AND ${HEAD}`;
    const keep = (keepForMs ?? 0) * US;
    const isKept = keepForMs !== undefined && keepForMs > 0;
    return {
      sql: isKept
        ? sql`START TRANSACTION;
UPDATE ${table} SET until = GREATEST(until, ${NOW} + ${keep}) WHERE name = ${name} AND ${HEAD} AND ${LIVE_PERMITS};
UPDATE ${table} SET until = ${NOW} + ${keep} WHERE ${member};
${waiting};
${COMMIT}`
        : sql`DELETE FROM ${table} WHERE ${member}; ${waiting}`,
      read: (reply) => {
        const at = isKept ? 2 : 0;
        const { affectedRows } = (reply as ResultSetHeader[])[at]!;
        const [row] = rowsOf<{ waiting: number }>(reply, at + 1);
        return { wasHeld: affectedRows > 0, othersWaiting: row?.waiting === 1 };
      },
    };
  }

  /** A permit whose end is 0 is one that this transaction has ended: it deletes these, and no other has that end. */
  private releaseAll(claims: readonly PermitClaim[]): Statement<readonly (ReleaseReply | undefined)[]> {
    const { table, me } = this.names;
    const own = sql`${joinedByName(table)} ON t.name = v.n AND t.member = v.o`;
    const unlocked = (which: Sql): Sql =>
      sql`(SELECT v.n, v.o FROM (${rowsOfClaims(claims)}) v ${own} WHERE ${which} LIMIT ${claims.length} FOR UPDATE SKIP LOCKED) v ${own}`;
    return {
      sql: sql`START TRANSACTION;
UPDATE ${unlocked(sql`t.until > ${NOW}`)} SET t.until = 0 WHERE t.until > ${NOW};
SELECT t.name, t.owner, IF(t.until = 0, REPLACE(h.queue, ${me}, '') <> '', NULL) AS waiting FROM (${rowsOfClaims(claims)}) v ${own}
${joinedByName(table, raw('h'))} ON h.name = v.n AND h.member = '' WHERE t.until = 0 OR t.until > ${NOW};
DELETE t FROM ${unlocked(raw('t.until = 0'))} WHERE t.until = 0;
${COMMIT}`,
      read: (reply) => repliesOf(claims, textRowsOf(reply, 2), releasedRow),
    };
  }

  /**
   * Rows that others have locked are skipped. A permit is extended only when its key lives as long: else the key would be
   * free for an exclusive lock before. The time is the same in all statements, so the last one shows which were extended.
   */
  extend(claims: readonly PermitClaim[]): Statement<readonly ExtendReply[]> {
    const { table } = this.names;
    const wanted = rowsOfClaims(claims);
    const byName = joinedByName(table);
    const head = sql`${joinedByName(table, raw('h'))} ON h.name = v.n AND h.member = '' AND h.kind = 'permit'`;
    const isOwn = raw('t.name = v.n AND t.member = v.o');
    const unlocked = sql`LIMIT ${claims.length} FOR UPDATE SKIP LOCKED`;
    const free = sql`(SELECT v.n, v.l FROM (SELECT n, MAX(l) AS l FROM (${wanted}) a GROUP BY n) v ${head} ${unlocked}) v`;
    const kept = sql`(SELECT v.n, v.o, v.l FROM (${wanted}) v ${head} AND h.until >= LAST_INSERT_ID() + v.l ${byName} ON ${isOwn} ${unlocked}) v`;
    return {
      sql: sql`START TRANSACTION;
SELECT LAST_INSERT_ID(${NOW});
UPDATE ${free} ${head} SET h.until = GREATEST(h.until, LAST_INSERT_ID() + v.l) WHERE h.until > ${NOW};
UPDATE ${kept} ${byName} ON ${isOwn} SET t.until = GREATEST(t.until, LAST_INSERT_ID() + v.l) WHERE t.until > ${NOW};
SELECT t.name, t.owner, t.until - LAST_INSERT_ID() AS left_us FROM (${wanted}) v ${byName} ON ${isOwn} WHERE t.until > ${NOW};
${COMMIT}`,
      read: (reply) => extended(claims, reply, 4),
    };
  }

  peek(claims: readonly PermitClaim[]): Statement<readonly Sight[]> {
    const { table } = this.names;
    const names = listOf(claims.map(({ finalKey }) => nameOf(finalKey)));
    return {
      sql: sql`SELECT h.name, ${READ_ONLY}, GREATEST(0, IF(h.kind <> 'permit' OR h.until <= ${NOW}, h.until - ${NOW},
IF(COUNT(m.member) < h.permits, 0, MIN(m.until) - ${NOW}))) AS freeInUs
FROM ${table} h LEFT JOIN ${table} m ON m.name = h.name AND m.member > '' AND m.until > ${NOW}
WHERE h.name IN (${names}) AND h.member = '' GROUP BY h.name, h.kind, h.until, h.permits`,
      prepared: claims.length === 1,
      read: (reply) => {
        const found = new Map(
          peeked<{ name: Buffer; freeInUs: number | null }>(reply).map(({ name, freeInUs }) => [
            name.toString(),
            freeInUs === null ? Infinity : msOf(freeInUs),
          ]),
        );
        return claims.map(({ finalKey }) => ({ freeInMs: found.get(nameTextOf(finalKey)) ?? 0 }));
      },
    };
  }
}
