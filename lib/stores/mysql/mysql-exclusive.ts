import type { ExclusiveClaim } from '../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { raw, sql, type Attempt, type Sql, type Statement } from '../sql/sql.js';
import type { KindStatements, Waiting } from '../sql/sql-dialect.js';
import { bytes, HEAD, listOf, msOf, nameOf, nameTextOf, TURN_US, US } from '../sql/sql-terms.js';
import type { MysqlBell } from './mysql-bell.js';
import {
  extended,
  idOf,
  joinedByName,
  NOW,
  peeked,
  READ_ONLY,
  RELEASED,
  rowsOfClaims,
  type MysqlNames,
} from './mysql-terms.js';

/**
 * Exclusive locks in MySQL and MariaDB: one row for each key, with the server's clock.
 *
 * Both servers execute the assignments of an upsert from left to right, and later ones see the new values. With
 * SIMULTANEOUS_ASSIGNMENT in `sql_mode`, MariaDB lets them see the old values. The upsert is the same in both: a grant
 * sets the owner, for whom `mayTake` is true before and after, and a refusal changes only the queue, which comes last.
 * A new grant shows in the old owner, or in the new `since`. The value of LAST_INSERT_ID(…) comes back in the reply,
 * without a second statement.
 */
export class MysqlExclusive implements KindStatements<ExclusiveClaim> {
  constructor(
    private readonly names: MysqlNames,
    /** Undefined behind a proxy that shares connections. */
    private readonly bell: MysqlBell | undefined,
  ) {}

  watch(finalKey: string, listener: WatchListener): Watch | undefined {
    return this.bell?.watch(finalKey, listener);
  }

  released(): void {
    this.bell?.ring();
  }

  acquire(claim: ExclusiveClaim, { isQueued }: Waiting): Statement<AcquireReply> | Attempt<AcquireReply> {
    return isQueued ? this.upsert(claim) : { ...this.takeFree(claim), otherwise: () => this.upsert(claim) };
  }

  /**
   * Takes a key that is free and that no process waits for, in less than half of the time of the upsert. Reply: the last
   * token; 0 when nothing has changed.
   */
  private takeFree({
    finalKey,
    owner,
    leaseMs,
    tokens,
  }: ExclusiveClaim): Statement<AcquireReply | undefined> {
    const { table, bell } = this.names;
    return {
      sql: sql`UPDATE ${table} SET fence = LAST_INSERT_ID(GREATEST(fence + 1, ${NOW}) + ${tokens} - 1), kind = 'exclusive',
owner = ${bytes(owner)}, since = ${NOW}, until = ${NOW} + ${leaseMs * US}, bell = ${bell}
WHERE name = ${nameOf(finalKey)} AND ${HEAD} AND until <= ${NOW} AND queue = ''`,
      prepared: true,
      read: (reply) => {
        const last = Number(idOf(reply));
        if (last === 0) return undefined;
        const token = last - tokens + 1;
        return { status: 'granted', validForMs: leaseMs, ...(tokens > 0 && { token, tokens }) };
      },
    };
  }

  /**
   * Reply: an even number is twice the first token; an odd one is 4 × µs until the next request + 2 if the key is held as
   * another kind + 1.
   */
  private upsert({ finalKey, owner, leaseMs, tokens, waits }: ExclusiveClaim): Statement<AcquireReply> {
    const { table, me, bell } = this.names;
    const mayTake = sql`(owner = VALUES(owner) OR ${this.isFree()})`;
    const isNew = sql`(owner <> VALUES(owner) OR since = VALUES(since))`;
    const own = sql`LOCATE(${me}, queue)`;
    return {
      sql: sql`INSERT INTO ${table} (name, member, kind, owner, since, until, fence, bell)
VALUES (${nameOf(finalKey)}, '', 'exclusive', ${bytes(owner)}, ${NOW}, ${NOW} + ${leaseMs * US}, LAST_INSERT_ID(2 * ${NOW}) DIV 2 + ${tokens} - 1, ${bell})
ON DUPLICATE KEY UPDATE
fence = IF(${mayTake}, LAST_INSERT_ID(2 * GREATEST(fence + 1, ${NOW})) DIV 2 + ${tokens} - 1,
  IF(LAST_INSERT_ID(4 * GREATEST(1, IF(until > ${NOW}, until, ABS(until) + ${TURN_US}) - ${NOW}) + 2 * (kind <> 'exclusive') + 1), fence, 0)),
since = IF(owner <> VALUES(owner) AND ${mayTake}, VALUES(since), since),
owner = IF(${mayTake}, VALUES(owner), owner),
until = IF(${mayTake}, VALUES(until), until),
kind = IF(${mayTake}, 'exclusive', kind),
bell = IF(${mayTake}, VALUES(bell), bell),
queue = IF(${mayTake}, IF(${isNew}, SUBSTRING(queue, IF(${own} > 0, ${own}, 1) + ${me.length}), queue),
  IF(${waits ? 1 : 0} AND ${own} = 0 AND LENGTH(queue) < ${this.names.maxQueue}, CONCAT(queue, ${me}), queue))`,
      prepared: true,
      read: (reply) => {
        const id = idOf(reply);
        if (id === 0n) throw new StoreFailure(NO_REPLY, 'unknown', {});
        if (id % 2n === 0n)
          return {
            status: 'granted',
            validForMs: leaseMs,
            ...(tokens > 0 && { token: Number(id / 2n), tokens }),
          };
        const heldAs = (id & 2n) === 2n ? ({ heldAs: 'permit' } as const) : {};
        return { status: 'taken', retryInMs: msOf(id >> 2n), ...heldAs };
      },
    };
  }

  /** Reply: 1 without waiting processes, 2 with some, 0 when the owner did not hold the key. */
  release({ finalKey, owner }: ExclusiveClaim, { keepForMs = 0 }: ReleaseOptions): Statement<ReleaseReply> {
    const { table } = this.names;
    const end = keepForMs > 0 ? sql`${NOW} + ${keepForMs * US}` : RELEASED;
    return {
      sql: sql`UPDATE ${table} SET until = IF(LAST_INSERT_ID(1 + (queue <> '')), ${end}, until)
WHERE name = ${nameOf(finalKey)} AND ${HEAD} AND owner = ${bytes(owner)} AND until > ${NOW}`,
      prepared: true,
      read: (reply) => {
        const id = Number(idOf(reply));
        return { wasHeld: id > 0, othersWaiting: id === 2 };
      },
    };
  }

  /**
   * Rows that others have locked are skipped: one of them must not delay the rest. The time is the same in all statements, so the last one shows which rows were extended.
   */
  extend(claims: readonly ExclusiveClaim[]): Statement<readonly ExtendReply[]> {
    const { table } = this.names;
    const wanted = sql`(${rowsOfClaims(claims)}) v`;
    const byName = joinedByName(table);
    const isOwn = raw("t.name = v.n AND t.member = '' AND t.owner = v.o");
    const free = sql`(SELECT v.n, v.o, v.l FROM ${wanted} ${byName} ON ${isOwn} LIMIT ${claims.length} FOR UPDATE SKIP LOCKED) v`;
    return {
      sql: sql`SELECT LAST_INSERT_ID(${NOW});
UPDATE ${free} ${byName} ON ${isOwn} SET t.until = GREATEST(t.until, LAST_INSERT_ID() + v.l) WHERE t.until > ${NOW};
SELECT t.name, t.owner, t.until - LAST_INSERT_ID() AS leftUs FROM ${wanted} ${byName} ON ${isOwn} WHERE t.until > ${NOW}`,
      read: (reply) => extended(claims, reply, 2),
    };
  }

  /** A process that is not in the wait queue any more has missed its turn. Its next request puts it there again. */
  peek(claims: readonly ExclusiveClaim[]): Statement<readonly number[]> {
    const { table, me, maxQueue } = this.names;
    const mayEnter = sql`${this.isFree()} OR LOCATE(${me}, queue) = 0 AND LENGTH(queue) < ${maxQueue}`;
    const names = listOf(claims.map(({ finalKey }) => nameOf(finalKey)));
    return {
      sql: sql`SELECT name, bell, ${READ_ONLY}, until > ${NOW} AS held,
IF(${mayEnter}, 0, GREATEST(0, ABS(until) - ${NOW} + IF(until > ${NOW}, 0, ${TURN_US}))) AS freeInUs
FROM ${table} WHERE name IN (${names}) AND ${HEAD}`,
      prepared: claims.length === 1,
      read: (reply) => {
        const found = new Map(peeked<Peeked>(reply).map((row) => [row.name.toString(), row]));
        return claims.map(({ finalKey }) => {
          const row = found.get(nameTextOf(finalKey));
          if (!row) return 0;
          if (row.held === 1) this.bell?.seen(finalKey, row.bell.toString());
          return msOf(row.freeInUs);
        });
      },
    };
  }

  /** Condition: the key is free, and the wait queue lets this process go first. */
  private isFree(): Sql {
    const { me } = this.names;
    return sql`until <= ${NOW} AND (queue = '' OR LEFT(queue, ${me.length}) = ${me} OR ${NOW} - ABS(until) NOT BETWEEN 0 AND ${TURN_US})`;
  }
}

/** A trigger for updates takes the value away. Nothing tells a grant from a refusal then. */
const NO_REPLY =
  'the server does not say whether the lock was granted: the table of the locks must have no trigger';

interface Peeked {
  readonly name: Buffer;
  readonly bell: Buffer;
  readonly held: number;
  readonly freeInUs: number;
}
