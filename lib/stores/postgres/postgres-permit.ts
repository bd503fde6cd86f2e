import { NO_NUMBER_OF_PERMITS } from '../../core/kinds/permit.kind.js';
import type { PermitClaim } from '../../core/seam/claim.js';
import type { ReleaseOptions } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { raw, sql, type Statement, type Together } from '../sql/sql.js';
import type { Sight, WakeUps } from '../sql/places.js';
import type { KindStatements, Waiting } from '../sql/sql-dialect.js';
import { bytes, HEAD, isTrue, listOf, msOf, nameOf, releasedRow, repliesOf, US } from '../sql/sql-terms.js';
import {
  extended,
  literal,
  NO_FLUSH,
  NOW,
  ONE_NOW,
  lockedRow,
  ofWanted,
  released,
  rowsOf,
  sightsOf,
  withWanted,
  type PostgresNames,
} from './postgres-terms.js';

/** Condition: the wanted owner has a permit. */
const MEMBER = sql`r.member = w.owner AND r.until > ${NOW}`;

/**
 * Permits in PostgreSQL: a row for each permit that is held, beside the row of the key. That row lives as long as the
 * longest lease so far: until then the number of permits is remembered, and the key is no exclusive lock.
 *
 * Each transaction locks the row of the key first. It counts in a later statement, because a statement that has waited
 * for a lock still sees the other rows as they were before.
 */
export class PostgresPermit implements KindStatements<PermitClaim> {
  readonly releases: Together<PermitClaim, ReleaseReply> = { many: (claims) => this.releaseAll(claims) };

  constructor(
    private readonly names: PostgresNames,
    readonly wakeUps: WakeUps | undefined,
  ) {}

  acquire(
    { finalKey, owner, leaseMs, of, waits }: PermitClaim,
    { othersWait }: Waiting,
  ): Statement<AcquireReply> {
    const { table, me, maxQueue } = this.names;
    const [name, who, lease] = [literal(nameOf(finalKey)), literal(bytes(owner)), leaseMs * US];
    const head = sql`name = ${name} AND ${HEAD}`;
    const isMine = sql`EXISTS (SELECT 1 FROM ${table} o WHERE o.name = ${name} AND o.member = ${who})`;
    const first =
      of === undefined
        ? raw('')
        : sql`INSERT INTO ${table} (name, kind, since, until, fence, permits)
SELECT ${name}, 'permit', n.now, n.now + ${lease}, n.now, ${of} FROM ${ONE_NOW} ON CONFLICT (name, member) DO NOTHING;
`;
    const permits = of === undefined ? raw('h.permits') : of;
    const revives = raw(of === undefined ? 'false' : 'h.until <= n.now');
    const enters = waits ? sql`strpos(queue, ${me}) = 0 AND length(queue) < ${maxQueue}` : raw('false');
    const leaves = othersWait ? raw('false') : sql`strpos(queue, ${me}) > 0`;
    return {
      sql: sql`${first}SELECT permits, kind = 'permit' AND until > ${NOW} AS live FROM ${table} WHERE ${head} FOR UPDATE;
UPDATE ${table} h SET (permits, queue, owner, since, kind, until) = (
SELECT ${permits}, CASE WHEN h.until <= n.now THEN '' ELSE h.queue END, '', CASE WHEN h.until <= n.now THEN n.now ELSE h.since END, 'permit',
greatest(h.until, n.now + ${lease}) FROM ${ONE_NOW}) FROM ${ONE_NOW} WHERE h.name = ${name} AND h.${HEAD} AND (h.kind = 'permit' AND h.until > n.now OR ${revives});
DELETE FROM ${table} WHERE name = ${name} AND member > '' AND until <= ${NOW};
INSERT INTO ${table} (name, member, kind, owner, since, until)
SELECT h.name, ${who}, 'permit', ${who}, n.now, least(h.until, n.now + ${lease}) FROM ${table} h, ${ONE_NOW}
WHERE h.name = ${name} AND h.${HEAD} AND h.kind = 'permit' AND h.until > n.now
AND ((SELECT count(*) FROM ${table} m WHERE m.name = ${name} AND m.member > '') < h.permits OR ${isMine})
ON CONFLICT (name, member) DO UPDATE SET until = excluded.until;
UPDATE ${table} SET queue = CASE WHEN ${isMine} THEN replace(queue, ${me}, '') ELSE queue || ${me} END
WHERE ${head} AND kind = 'permit' AND CASE WHEN ${isMine} THEN ${leaves} ELSE ${enters} END;
SELECT kind, until - ${NOW} AS left_us, ${isMine} AS mine,
(SELECT min(until) FROM ${table} m WHERE m.name = ${name} AND m.member > '') - ${NOW} AS soonest_us FROM ${table} WHERE ${head}`,
      read: (reply) => {
        const at = of === undefined ? 0 : 1;
        const [before] = rowsOf(reply, at);
        const [state] = rowsOf(reply, at + 5);
        const live = state && Number(state['left_us']) > 0 ? state : undefined;
        const isPermit = live?.['kind'] === 'permit';
        if (live && !isPermit)
          return { status: 'taken', retryInMs: msOf(live['left_us']), heldAs: 'exclusive' };
        // The lease was over before the transaction.
        if (!live && of !== undefined) return { status: 'taken', retryInMs: 0 };
        if (!live)
          throw new StoreFailure(NO_NUMBER_OF_PERMITS, 'not-executed', { keyOnly: true, claimOnly: true });
        const limitBefore = Number(before?.['permits']);
        const isChanged = of !== undefined && isTrue(before?.['live']) && limitBefore !== of;
        const limit = isChanged ? { limitBefore } : {};
        if (isTrue(live['mine'])) return { status: 'granted', validForMs: leaseMs, ...limit };
        const soonestUs = live['soonest_us'];
        const retryInMs = soonestUs === null ? Infinity : msOf(soonestUs);
        return { status: 'taken', retryInMs, ...limit };
      },
    };
  }

  /**
   * With the row of the key locked, a process that was refused is in the wait queue, or counts after this. A crash may
   * undo a release that nothing was to wait for.
   */
  release({ finalKey, owner }: PermitClaim, { keepForMs = 0 }: ReleaseOptions): Statement<ReleaseReply> {
    const { table, me, notify } = this.names;
    const name = nameOf(finalKey);
    const mine = sql`m.name = ${name} AND m.member = ${bytes(owner)} AND m.until > ${NOW}`;
    const ended =
      keepForMs > 0
        ? sql`ended AS (UPDATE ${table} m SET until = ${NOW} + ${keepForMs * US} FROM head WHERE ${mine} RETURNING m.until),
kept AS (UPDATE ${table} h SET until = greatest(h.until, ended.until) FROM ended WHERE h.name = ${name} AND h.${HEAD})`
        : sql`ended AS (DELETE FROM ${table} m USING head WHERE ${mine} RETURNING m.until)`;
    const isFlushed = keepForMs > 0 ? raw('') : NO_FLUSH;
    return {
      sql: sql`WITH head AS MATERIALIZED (SELECT replace(queue, ${me}, '') <> '' AS waiting, queue FROM ${table} WHERE name = ${name} AND ${HEAD} FOR UPDATE),
${ended}
SELECT waiting${isFlushed}, CASE WHEN queue <> '' THEN ${notify(sql`${name}::text`)} END FROM head, ended`,
      prepared: true,
      read: released,
    };
  }

  /** Locks the row of each key first, as a release of one. Nothing is counted here. */
  private releaseAll(claims: readonly PermitClaim[]): Statement<readonly (ReleaseReply | undefined)[]> {
    const { table, me, notify } = this.names;
    return {
      sql: sql`${withWanted(claims)},
head AS MATERIALIZED (SELECT w.name, w.owner, h.queue, m.place FROM wanted w, ${lockedRow(table, HEAD, raw(', r.queue'))} h, ${lockedRow(table, MEMBER)} m),
done AS (DELETE FROM ${table} m USING head WHERE m.ctid = head.place
RETURNING m.name, m.owner, replace(head.queue, ${me}, '') <> '' AS waiting${NO_FLUSH}, CASE WHEN head.queue <> '' THEN ${notify(raw('m.name'))} END)
${ofWanted(table, raw('d.waiting'), MEMBER)}`,
      prepared: true,
      read: (reply) => repliesOf(claims, rowsOf(reply), releasedRow),
    };
  }

  extend(claims: readonly PermitClaim[]): Statement<readonly ExtendReply[]> {
    const { table } = this.names;
    return {
      sql: sql`${withWanted(claims)},
head AS MATERIALIZED (SELECT w.name, h.place FROM (SELECT DISTINCT name FROM wanted) w,
${lockedRow(table, sql`${HEAD} AND r.kind = 'permit' AND r.until > ${NOW}`)} h),
mine AS MATERIALIZED (SELECT m.place, w.lease FROM wanted w JOIN head ON head.name = w.name, ${lockedRow(table, MEMBER)} m),
done AS (UPDATE ${table} m SET until = greatest(m.until, ${NOW} + mine.lease) FROM mine
WHERE m.ctid = mine.place AND m.until > ${NOW} RETURNING m.name, m.owner, m.until),
kept AS (UPDATE ${table} h SET until = greatest(h.until, longest.until)
FROM (SELECT head.place, max(done.until) AS until FROM done JOIN head ON head.name = done.name GROUP BY head.place) longest WHERE h.ctid = longest.place)
${ofWanted(table, sql`d.until - ${NOW} AS left_us`, MEMBER)}`,
      prepared: true,
      read: (reply) => extended(claims, reply),
    };
  }

  /** A process that is not in the wait queue would not be notified. Its next request puts it there. */
  peek(claims: readonly PermitClaim[]): Statement<readonly Sight[]> {
    const { table, me, maxQueue } = this.names;
    const names = listOf(claims.map(({ finalKey }) => nameOf(finalKey)));
    return {
      sql: sql`SELECT h.name, greatest(0, CASE WHEN h.until <= n.now OR strpos(h.queue, ${me}) = 0 AND length(h.queue) < ${maxQueue} THEN 0
WHEN h.kind <> 'permit' THEN h.until - n.now WHEN m.taken < h.permits THEN 0 ELSE m.soonest - n.now END) AS free_us
FROM ${table} h, ${ONE_NOW}, LATERAL (SELECT count(*) AS taken, min(m.until) AS soonest FROM ${table} m
WHERE m.name = h.name AND m.member > '' AND m.until > n.now) m WHERE h.name IN (${names}) AND h.${HEAD}`,
      prepared: claims.length === 1,
      read: (reply) => sightsOf(claims, reply),
    };
  }
}
