import type { ExclusiveClaim } from '../../core/seam/claim.js';
import type { ReleaseOptions } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
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
  isTrue,
  listOf,
  msOf,
  nameOf,
  releasedRow,
  repliesOf,
  US,
  type Row,
} from '../sql/sql-terms.js';
import {
  extended,
  NO_FLUSH,
  NOW,
  ONE_NOW,
  lockedRow,
  ofWanted,
  released,
  RELEASED,
  rowsOf,
  sightsOf,
  TURN,
  withWanted,
  type PostgresNames,
} from './postgres-terms.js';

/**
 * Exclusive locks in PostgreSQL: one row for each key, with the server's clock.
 *
 * An upsert waits for the lock of the row, and then sees its newest version. So the subquery of its assignments reads
 * the clock once and decides there. Also the token comes from there: a token taken before would be older than that of a
 * holder in between.
 */
export class PostgresExclusive implements KindStatements<ExclusiveClaim> {
  readonly free: Together<ExclusiveClaim, AcquireReply> = {
    one: (claim) => this.takeFree(claim),
    many: (claims) => this.takeFreeOnes(claims),
    inserting: { many: (claims) => this.insert(claims) },
  };
  readonly releases: Together<ExclusiveClaim, ReleaseReply> = {
    many: (claims) => this.releaseAll(claims, RELEASED, NO_FLUSH),
  };
  readonly keeps: Together<ExclusiveClaim, ReleaseReply> = {
    many: (claims) => this.releaseAll(claims, sql`${NOW} + m.lease`, raw('')),
  };

  constructor(
    private readonly names: PostgresNames,
    readonly wakeUps: WakeUps | undefined,
  ) {}

  /**
   * Takes a key that is free and that no process waits for, in half of the time of the upsert. If it has waited for the
   * row, and the row was changed meanwhile, the server evaluates all of it again.
   */
  private takeFree(claim: ExclusiveClaim): Statement<AcquireReply | undefined> {
    const { finalKey, owner, leaseMs, tokens } = claim;
    return {
      sql: sql`UPDATE ${this.names.table} SET kind = 'exclusive', owner = ${bytes(owner)}, since = ${NOW}, until = ${NOW} + ${leaseMs * US},
fence = greatest(fence + 1, ${NOW}) + ${tokens} - 1 WHERE name = ${nameOf(finalKey)} AND ${HEAD} AND until <= ${NOW} AND queue = '' RETURNING fence`,
      prepared: true,
      read: (reply) => {
        const [row] = rowsOf(reply);
        return row && grantOf(claim, Number(row['fence']));
      },
    };
  }

  /**
   * Takes the free ones of several keys. A row that others have locked is skipped, so the reply never says "taken". New rows
   * need a commit of their own: an insert waits for rows that others change, and their transactions may wait for this one.
   */
  private takeFreeOnes(claims: readonly ExclusiveClaim[]): Statement<readonly OneAcquire[]> {
    const { table } = this.names;
    const free = lockedRow(table, sql`${HEAD} AND until <= ${NOW} AND queue = ''`);
    return {
      sql: sql`${withWanted(claims)},
free AS MATERIALIZED (SELECT l.place, w.owner, w.lease, w.tokens FROM wanted w, ${free} l),
got AS (UPDATE ${table} l SET kind = 'exclusive', owner = f.owner, since = ${NOW}, until = ${NOW} + f.lease,
fence = greatest(l.fence + 1, ${NOW}) + f.tokens - 1 FROM free f WHERE l.ctid = f.place RETURNING l.name, l.owner, l.fence)
SELECT w.name, w.owner, got.fence, (SELECT until <= ${NOW} AND queue = '' FROM ${table} r WHERE r.name = w.name AND ${HEAD}) AS free
FROM wanted w LEFT JOIN got ON got.name = w.name AND got.owner = w.owner`,
      prepared: true,
      read: (reply) => grantsOf(claims, rowsOf(reply)),
    };
  }

  /** Inserts the rows of keys that have none, in the order of their bytes. Other processes may do the same. */
  private insert(claims: readonly ExclusiveClaim[]): Statement<readonly OneAcquire[]> {
    return {
      sql: sql`${withWanted(claims)} INSERT INTO ${this.names.table} (name, kind, owner, since, until, fence)
SELECT name, 'exclusive', owner, ${NOW}, ${NOW} + lease, ${NOW} + tokens - 1 FROM wanted ORDER BY name COLLATE "C"
ON CONFLICT (name, member) DO NOTHING RETURNING name, owner, fence`,
      prepared: true,
      read: (reply) => grantsOf(claims, rowsOf(reply)),
    };
  }

  /** A claim that changes nothing only reads. */
  acquire(claim: ExclusiveClaim): Statement<AcquireReply & Partial<Sight>> {
    const { finalKey, owner, leaseMs, tokens, waits } = claim;
    const { table, me, meLength, rank } = this.names;
    const [name, who, lease] = [nameOf(finalKey), bytes(owner), leaseMs * US];
    const mayTake = sql`(l.owner = ${who} OR ${this.isFree()})`;
    const enters = waits ? this.mayEnter() : raw('false');
    return {
      sql: sql`WITH held AS MATERIALIZED (
SELECT l.kind, ${this.freeInUs()} AS free_us, ${rank} AS rank FROM ${table} l, ${ONE_NOW} WHERE l.name = ${name} AND l.${HEAD} AND NOT ${mayTake} AND NOT (${enters})
), got AS (
INSERT INTO ${table} AS l (name, member, kind, owner, since, until, fence)
SELECT ${name}::text, '', 'exclusive', ${who}::text, n.now, n.now + ${lease}, n.now + ${tokens} - 1 FROM ${ONE_NOW} WHERE NOT EXISTS (SELECT 1 FROM held)
ON CONFLICT (name, member) DO UPDATE SET (kind, owner, since, until, fence, queue) = (
SELECT CASE WHEN may THEN 'exclusive' ELSE l.kind END,
CASE WHEN may THEN excluded.owner ELSE l.owner END,
CASE WHEN may AND l.owner <> excluded.owner THEN now ELSE l.since END,
CASE WHEN may THEN now + ${lease} ELSE l.until END,
CASE WHEN may THEN greatest(l.fence + 1, now) + ${tokens} - 1 ELSE l.fence END,
CASE WHEN may AND l.owner <> excluded.owner THEN CASE WHEN strpos(l.queue, ${me}) = 0 THEN '' ELSE substr(l.queue, strpos(l.queue, ${me}) + ${meLength}) END
WHEN NOT may AND ${enters} THEN l.queue || ${me} ELSE l.queue END
FROM (SELECT n.now, ${mayTake} AS may FROM ${ONE_NOW}) decided)
RETURNING l.owner, l.fence, l.kind, (SELECT ${this.freeInUs()} FROM ${ONE_NOW}) AS free_us, ${rank} AS rank)
SELECT * FROM got UNION ALL SELECT '', 0, kind, free_us, rank FROM held`,
      prepared: true,
      read: (reply) => {
        const row = rowsOf(reply)[0]!;
        if (row['owner'] === owner) return grantOf(claim, Number(row['fence']));
        return takenOf(msOf(row['free_us']), Number(row['rank']), row['kind'] === 'exclusive');
      },
    };
  }

  /** A crash may undo a release that nothing was to wait for: then the lease ends by itself. */
  release({ finalKey, owner }: ExclusiveClaim, { keepForMs = 0 }: ReleaseOptions): Statement<ReleaseReply> {
    const { table, pass } = this.names;
    const name = nameOf(finalKey);
    const end = keepForMs > 0 ? sql`${NOW} + ${keepForMs * US}` : RELEASED;
    const isFlushed = keepForMs > 0 ? raw('') : NO_FLUSH;
    return {
      sql: sql`UPDATE ${table} SET until = ${end} WHERE name = ${name} AND ${HEAD} AND owner = ${bytes(owner)} AND until > ${NOW}
RETURNING queue <> '' AS waiting${isFlushed}, ${pass(sql`${name}::text`)}`,
      prepared: true,
      read: released,
    };
  }

  private releaseAll(
    claims: readonly ExclusiveClaim[],
    end: Sql,
    isFlushed: Sql,
  ): Statement<readonly (ReleaseReply | undefined)[]> {
    const { table, pass } = this.names;
    return {
      sql: sql`${withWanted(claims)},
mine AS MATERIALIZED (SELECT l.place, w.lease FROM wanted w, ${lockedRow(table, MINE)} l),
done AS (UPDATE ${table} l SET until = ${end} FROM mine m WHERE l.ctid = m.place
RETURNING l.name, l.owner, queue <> '' AS waiting${isFlushed}, ${pass(raw('l.name'))})
${ofWanted(table, raw('d.waiting'), MINE)}`,
      prepared: true,
      read: (reply) => repliesOf(claims, rowsOf(reply), releasedRow),
    };
  }

  extend(claims: readonly ExclusiveClaim[]): Statement<readonly ExtendReply[]> {
    const { table } = this.names;
    return {
      sql: sql`${withWanted(claims)},
mine AS MATERIALIZED (SELECT l.place, w.lease FROM wanted w, ${lockedRow(table, MINE)} l),
done AS (UPDATE ${table} l SET until = greatest(l.until, ${NOW} + m.lease) FROM mine m
WHERE l.ctid = m.place AND l.until > ${NOW} RETURNING l.name, l.owner, l.until)
${ofWanted(table, sql`d.until - ${NOW} AS left_us`, MINE)}`,
      prepared: true,
      read: (reply) => extended(claims, reply),
    };
  }

  /** A process that is not in the wait queue any more has missed its turn. Its next request puts it there again. */
  peek(claims: readonly ExclusiveClaim[]): Statement<readonly Sight[]> {
    const { table, rank } = this.names;
    const names = listOf(claims.map(({ finalKey }) => nameOf(finalKey)));
    return {
      sql: sql`SELECT l.name, ${rank} AS rank, CASE WHEN ${this.isFree()} OR ${this.mayEnter()} THEN 0
WHEN ${rank} < 2 OR l.until <= n.now THEN greatest(0, ${this.freeInUs()}) END AS free_us FROM ${table} l, ${ONE_NOW} WHERE l.name IN (${names}) AND l.${HEAD}`,
      prepared: claims.length === 1,
      read: (reply) => sightsOf(claims, reply),
    };
  }

  /** Condition: the key is free, and the wait queue lets this process take it. */
  private isFree(): Sql {
    return sql`l.until <= n.now AND n.now - abs(l.until) NOT BETWEEN 0 AND ${this.turnsBefore()} - 1`;
  }

  /** Time in µs until the wait queue lets this process take the key, if the hold ends as it is due to. */
  private freeInUs(): Sql {
    return sql`abs(l.until) + ${this.turnsBefore()} - n.now`;
  }

  private turnsBefore(): Sql {
    return sql`${TURN} * least(${this.names.rank}, 2)`;
  }

  /** Condition: this process is not in the wait queue, which has room. */
  private mayEnter(): Sql {
    const { me, maxQueue } = this.names;
    return sql`strpos(l.queue, ${me}) = 0 AND length(l.queue) < ${maxQueue}`;
  }
}

/** Condition: the wanted owner has the row. */
const MINE = sql`${HEAD} AND r.owner = w.owner AND r.until > ${NOW}`;

/** Reply to one of several acquires. */
type OneAcquire = OneOf<AcquireReply>;

/** Returns the grants of several claims: a row without a token says whether the key is free, or has no row. */
const grantsOf = (claims: readonly ExclusiveClaim[], rows: readonly Row[]): readonly OneAcquire[] =>
  repliesOf(claims, rows, (row, claim) => {
    const fence = row?.['fence'] ?? null;
    if (fence !== null) return grantOf(claim, Number(fence));
    if (!row || isTrue(row['free'])) return undefined;
    return row['free'] === null ? NO_ROW : NOT_FREE;
  });
