import type { ExclusiveClaim } from '../../core/seam/claim.js';
import type { ReleaseOptions } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import {
  NO_ROW,
  NOT_FREE,
  raw,
  sql,
  type OneOf,
  type Sql,
  type Statement,
  type Together,
} from '../sql/sql.js';
import { takenOf, type Sight, type WakeUps } from '../sql/places.js';
import type { KindStatements } from '../sql/sql-dialect.js';
import {
  bytes,
  grantOf,
  HEAD,
  ID_LENGTH,
  ID_START,
  isTrue,
  listOf,
  MAX_QUEUED,
  msOf,
  nameOf,
  nameTextOf,
  releasedRow,
  repliesOf,
  TURN_US,
  US,
} from '../sql/sql-terms.js';
import { PARKED_S, type Heard } from './mysql-bell.js';
import {
  BELL,
  COMMIT,
  extended,
  idOf,
  joinedByName,
  MAX_QUEUE,
  NOW,
  peeked,
  READ_ONLY,
  RELEASED,
  rowsOf,
  rowsOfClaims,
  textRowsOf,
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
  readonly free: Together<ExclusiveClaim, AcquireReply> = {
    one: (claim) => this.takeFree(claim),
    many: (claims) => this.takeFreeOnes(claims),
    inserting: { many: (claims) => this.insert(claims) },
  };
  readonly releases: Together<ExclusiveClaim, ReleaseReply> = {
    many: (claims) => this.releaseAll(claims, RELEASED),
  };
  readonly keeps: Together<ExclusiveClaim, ReleaseReply> = {
    many: (claims) => this.releaseAll(claims, sql`${NOW} + v.l`),
  };

  constructor(
    private readonly names: MysqlNames,
    /** Undefined behind a proxy that shares connections. */
    readonly wakeUps: WakeUps | undefined,
  ) {}

  /**
   * Takes a key that is free and that no process waits for, in less than half of the time of the upsert. Reply: the last
   * token; 0 when nothing has changed.
   */
  private takeFree(claim: ExclusiveClaim): Statement<AcquireReply | undefined> {
    const { finalKey, owner, leaseMs, tokens } = claim;
    const { table, bell } = this.names;
    return {
      sql: sql`UPDATE ${table} SET fence = LAST_INSERT_ID(GREATEST(fence + 1, ${NOW}) + ${tokens} - 1), kind = 'exclusive',
owner = ${bytes(owner)}, since = ${NOW}, until = ${NOW} + ${leaseMs * US}, bell = ${bell}
WHERE name = ${nameOf(finalKey)} AND ${HEAD} AND until <= ${NOW} AND queue = ''`,
      prepared: true,
      read: (reply) => {
        const last = Number(idOf(reply));
        return last === 0 ? undefined : grantOf(claim, last);
      },
    };
  }

  /**
   * Takes the free ones of several keys. A row that others have locked is skipped, so the reply never says "taken". New
   * rows need a commit of their own: an insert waits for rows that others change, and their transactions may wait for
   * this one. The order of the assignments is not promised, so none reads a column that another one sets.
   */
  private takeFreeOnes(claims: readonly ExclusiveClaim[]): Statement<readonly OneOf<AcquireReply>[]> {
    const { table, bell } = this.names;
    const byName = sql`${joinedByName(table)} ON t.name = v.n AND t.member = ''`;
    const free = sql`(SELECT v.n, v.o, v.l, v.k FROM (${rowsOfClaims(claims)}) v ${byName}
WHERE t.until <= ${NOW} AND t.queue = '' LIMIT ${claims.length} FOR UPDATE SKIP LOCKED) v`;
    return this.granting(
      claims,
      sql`UPDATE ${free} ${byName} SET t.fence = GREATEST(t.fence + 1, LAST_INSERT_ID()) + v.k - 1, t.kind = 'exclusive', t.owner = v.o,
t.since = LAST_INSERT_ID(), t.until = LAST_INSERT_ID() + v.l, t.bell = ${bell} WHERE t.until <= LAST_INSERT_ID() AND t.queue = ''`,
    );
  }

  /** Inserts the rows of keys that have none, in the order of their bytes. Other processes may do the same. */
  private insert(claims: readonly ExclusiveClaim[]): Statement<readonly OneOf<AcquireReply>[]> {
    const { table, bell } = this.names;
    return this.granting(
      claims,
      sql`INSERT INTO ${table} (name, member, kind, owner, since, until, fence, bell)
SELECT v.n, '', 'exclusive', v.o, LAST_INSERT_ID(), LAST_INSERT_ID() + v.l, LAST_INSERT_ID() + v.k - 1, ${bell}
FROM (${rowsOfClaims(claims)}) v LEFT JOIN ${table} t FORCE INDEX (PRIMARY) ON t.name = v.n AND t.member = ''
WHERE t.name IS NULL ORDER BY v.n ON DUPLICATE KEY UPDATE ${table}.member = ${table}.member`,
    );
  }

  /** Returns a message whose statement grants keys: then its time is that of the row, beside the owner. */
  private granting(
    claims: readonly ExclusiveClaim[],
    grants: Sql,
  ): Statement<readonly OneOf<AcquireReply>[]> {
    return {
      sql: this.transaction(
        claims,
        grants,
        sql`fence, ${IS_NOW} AS is_now, until <= ${NOW} AND queue = '' AS free`,
      ),
      read: (reply) => {
        const rows = textRowsOf(reply, READ_AT);
        const found = new Map(rows.map((row) => [row['name'], row]));
        return repliesOf(claims, rows, (row, claim) => {
          if (row && isTrue(row['is_now'])) return grantOf(claim, Number(row['fence']));
          const own = found.get(nameTextOf(claim.finalKey));
          if (!own) return NO_ROW;
          return isTrue(own['free']) ? undefined : NOT_FREE;
        });
      },
    };
  }

  /**
   * A transaction: after an error of its last statement, nothing of it stands. Its statement number `READ_AT` reads the
   * rows.
   */
  private transaction(claims: readonly ExclusiveClaim[], change: Sql, columns: Sql): Sql {
    const names = listOf(claims.map(({ finalKey }) => nameOf(finalKey)));
    return sql`START TRANSACTION; SELECT LAST_INSERT_ID(${NOW}); ${change};
SELECT name, owner, ${columns} FROM ${this.names.table} FORCE INDEX (PRIMARY) WHERE name IN (${names}) AND ${HEAD}; ${COMMIT}`;
  }

  /**
   * Reply: an even number is twice the first token. An odd one is 512 × µs until this process may take the key + 4 ×
   * its place + 2 if the key is held as another kind + 1.
   */
  acquire(claim: ExclusiveClaim): Statement<AcquireReply & Partial<Sight>> {
    const { finalKey, owner, leaseMs, tokens, waits } = claim;
    const { table, me, bell } = this.names;
    const mayTake = sql`(owner = VALUES(owner) OR ${this.isFree()})`;
    const isNew = sql`(owner <> VALUES(owner) OR since = VALUES(since))`;
    const own = sql`LOCATE(${me}, queue)`;
    return {
      sql: sql`INSERT INTO ${table} (name, member, kind, owner, since, until, fence, bell)
VALUES (${nameOf(finalKey)}, '', 'exclusive', ${bytes(owner)}, ${NOW}, ${NOW} + ${leaseMs * US}, LAST_INSERT_ID(2 * ${NOW}) DIV 2 + ${tokens} - 1, ${bell})
ON DUPLICATE KEY UPDATE
fence = IF(${mayTake}, LAST_INSERT_ID(2 * GREATEST(fence + 1, ${NOW})) DIV 2 + ${tokens} - 1,
  IF(LAST_INSERT_ID(512 * GREATEST(1, ${this.freeInUs()}) + 4 * ${this.rank()} + 2 * (kind <> 'exclusive') + 1), fence, 0)),
since = IF(owner <> VALUES(owner) AND ${mayTake}, VALUES(since), since),
owner = IF(${mayTake}, VALUES(owner), owner),
until = IF(${mayTake}, VALUES(until), until),
kind = IF(${mayTake}, 'exclusive', kind),
bell = IF(${mayTake}, VALUES(bell), bell),
queue = IF(${mayTake}, IF(${isNew}, IF(${own} > 0, SUBSTRING(queue, ${own} + ${me.length}), ''), queue),
  IF(${waits ? 1 : 0} AND ${own} = 0 AND LENGTH(queue) < ${MAX_QUEUE}, CONCAT(queue, ${me}), queue))`,
      prepared: true,
      read: (reply) => {
        const id = idOf(reply);
        if (id === 0n) throw new StoreFailure(NO_REPLY, 'unknown', {});
        if (id % 2n === 0n) return grantOf(claim, Number(id / 2n) + tokens - 1);
        return takenOf(msOf(id >> 9n), Number((id >> 2n) & 127n), (id & 2n) === 0n);
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

  /** The time of the release stays in the row: it shows which ones were held. */
  private releaseAll(
    claims: readonly ExclusiveClaim[],
    end: Sql,
  ): Statement<readonly (ReleaseReply | undefined)[]> {
    const own = sql`${joinedByName(this.names.table)} ON ${IS_OWN}`;
    const held = sql`(SELECT v.n, v.o, v.l FROM (${rowsOfClaims(claims)}) v ${own}
WHERE t.until > ${NOW} LIMIT ${claims.length} FOR UPDATE SKIP LOCKED) v`;
    const change = sql`UPDATE ${held} ${own} SET t.until = ${end}, t.since = LAST_INSERT_ID() WHERE t.until > ${NOW}`;
    return {
      sql: this.transaction(
        claims,
        change,
        sql`IF(${IS_NOW}, queue <> '', NULL) AS waiting, ${IS_NOW} OR until > ${NOW} AS counts`,
      ),
      read: (reply) => {
        const rows = textRowsOf(reply, READ_AT).filter((row) => isTrue(row['counts']));
        return repliesOf(claims, rows, releasedRow);
      },
    };
  }

  /**
   * Rows that others have locked are skipped: one of them must not delay the rest. The time is the same in all
   * statements, so the last one shows which rows were extended.
   */
  extend(claims: readonly ExclusiveClaim[]): Statement<readonly ExtendReply[]> {
    const { table } = this.names;
    const wanted = sql`(${rowsOfClaims(claims)}) v`;
    const byName = joinedByName(table);
    const free = sql`(SELECT v.n, v.o, v.l FROM ${wanted} ${byName} ON ${IS_OWN} LIMIT ${claims.length} FOR UPDATE SKIP LOCKED) v`;
    return {
      sql: sql`SELECT LAST_INSERT_ID(${NOW});
UPDATE ${free} ${byName} ON ${IS_OWN} SET t.until = GREATEST(t.until, LAST_INSERT_ID() + v.l) WHERE t.until > ${NOW};
SELECT t.name, t.owner, t.until - LAST_INSERT_ID() AS left_us FROM ${wanted} ${byName} ON ${IS_OWN} WHERE t.until > ${NOW}`,
      read: (reply) => extended(claims, reply, 2),
    };
  }

  /** A process that is not in the wait queue any more has missed its turn. Its next request puts it there again. */
  peek(claims: readonly ExclusiveClaim[]): Statement<readonly Sight[]> {
    const names = claims.map(({ finalKey }) => nameOf(finalKey));
    return {
      sql: sql`SELECT ${this.sight(names)}`,
      prepared: claims.length === 1,
      read: (reply) => sightsOf(names, reply),
    };
  }

  /**
   * Waits for the bell of the process before this one. Where that does not ring, or is this process the first one,
   * waits for the bell of the holder. While it waits, it has nothing of the table locked. A process outside of the wait
   * queue waits for none: all of them would ask at each release.
   */
  waitForBell(finalKey: string): Statement<Heard> {
    const { table, me } = this.names;
    const name = nameOf(finalKey);
    const at = sql`LOCATE(${me}, queue)`;
    const before = raw(String(ID_LENGTH));
    return {
      sql: sql`SET @bell = COALESCE((SELECT IF(${at} > ${before} AND SUBSTRING(queue, ${at} - ${before}, 1) = ${bytes(ID_START)}, CONCAT(${bytes(BELL)}, SUBSTRING(queue, ${at} - ${before} + 1, ${before} - 1)),
IF(${at} > 0 AND until > ${NOW}, bell, '')) FROM ${table} WHERE name = ${name} AND ${HEAD}), '');
SELECT IF(@bell = '', 1, IS_FREE_LOCK(@bell)) AS isFree, IF(@bell = '', 0, GET_LOCK(@bell, ${PARKED_S})), IF(@bell = '', 0, RELEASE_LOCK(@bell));
SELECT ${this.sight([name])}`,
      read: (reply) => {
        const [bell] = rowsOf<{ isFree: number | null }>(reply, 1);
        return { ...sightsOf([name], (reply as unknown[])[2])[0]!, hadOwner: bell?.isFree === 0 };
      },
    };
  }

  /** What a statement reads of keys, after its SELECT. A process that is not in the wait queue has to ask again. */
  private sight(names: readonly Buffer[]): Sql {
    const { table, me } = this.names;
    const mayEnter = sql`${this.isFree()} OR LOCATE(${me}, queue) = 0 AND LENGTH(queue) < ${MAX_QUEUE}`;
    return sql`name, ${READ_ONLY}, ${this.rank()} AS place, IF(${mayEnter}, 0, IF(${this.rank()} < 2 OR until <= ${NOW}, GREATEST(0, ${this.freeInUs()}), NULL)) AS freeInUs
FROM ${table} WHERE name IN (${listOf(names)}) AND ${HEAD}`;
  }

  /** Condition: the key is free, and the wait queue lets this process take it. */
  private isFree(): Sql {
    return sql`until <= ${NOW} AND (${this.rank()} = 0 OR ${NOW} - ABS(until) NOT BETWEEN -${BEFORE} AND ${this.turnsBefore()} - 1)`;
  }

  /** Time in µs until the wait queue lets this process take the key, if the hold ends as it is due to. */
  private freeInUs(): Sql {
    return sql`ABS(until) + ${this.turnsBefore()} - ${NOW}`;
  }

  private turnsBefore(): Sql {
    return sql`${TURN} * LEAST(${this.rank()}, 2)`;
  }

  /** Number of processes in a wait queue before this one, which stands at the end if it is not there. */
  private rank(): Sql {
    const { me } = this.names;
    return sql`((LOCATE(${me}, CONCAT(queue, ${me})) - 1) DIV ${raw(String(ID_LENGTH))})`;
  }
}

/**
 * Returns the replies to a poll. While the key is held, only the first process and its heir have a time until it is
 * free.
 */
const sightsOf = (names: readonly Buffer[], reply: unknown): readonly Sight[] => {
  const found = new Map(peeked<Peeked>(reply).map((row) => [row.name.toString(), row]));
  return names.map((name): Sight => {
    const { freeInUs = 0, place = MAX_QUEUED } = found.get(name.toString()) ?? {};
    return { freeInMs: freeInUs === null ? Infinity : msOf(freeInUs), rank: place };
  });
};

/** A trigger for updates takes the value away. Nothing tells a grant from a refusal then. */
const NO_REPLY =
  'the server does not say whether the lock was granted: the table of the locks must have no trigger';
/** For how long in µs a statement may have waited for its row: what it says of the time is as old. */
const BEFORE = raw('2000000');
/** `TURN_US` in statements. */
const TURN = raw(String(TURN_US));
/** Condition: the row of a key has the owner of a claim. */
const IS_OWN = raw("t.name = v.n AND t.member = '' AND t.owner = v.o");
/** Condition: this message has changed the hold. */
const IS_NOW = raw('since = LAST_INSERT_ID()');
const READ_AT = 3;

interface Peeked {
  readonly name: Buffer;
  readonly place: number;
  readonly freeInUs: number | null;
}
