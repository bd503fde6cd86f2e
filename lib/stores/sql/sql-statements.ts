import type { Holder, KeyState, PermitState } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import type { KeyRow, NoteMessages, NoteStatements } from './sql-dialect.js';
import { IS_NOTE, MEMBER } from './sql-notes.js';
import { bytes, HEAD, isTrue, listOf, msOf, nameOf, nothing, US, waitersIn, type Row } from './sql-terms.js';
import { raw, sql, type Sql, type Statement } from './sql.js';

/** Rows are swept this long after their end. Their fence has to be as old: a new row begins at the clock. */
const SWEPT_AFTER_US = 24 * 3_600_000_000;
/** The wait queue of a key that stays free for this time has only dead processes. */
const ABANDONED_US = raw('2000000');
/** Maximum number of holders that `inspect` and `permits` return. */
export const MAX_HOLDERS = raw('100');
const WITH_HEAD = raw('101');

/** What differs between databases in statements that are otherwise the same. */
export interface SqlTable {
  readonly table: Sql;
  /** Microseconds since 1970 by the clock of the server. */
  readonly now: Sql;
  /** Returns the rows of a reply. */
  readonly rowsOf: (reply: unknown) => readonly Row[];
}

/** Statements for notes, which are rows. */
export class NoteRows implements NoteStatements {
  /** @param overwrites end of an insert: an earlier row gets the new `until` and `queue` */
  constructor(
    private readonly common: SqlTable,
    private readonly overwrites: Sql,
    readonly messages?: NoteMessages,
  ) {}

  write(row: string, text: string, ttlMs: number): Statement<void> {
    const { table, now } = this.common;
    return {
      sql: sql`INSERT INTO ${table} (name, member, until, queue)
VALUES (${bytes(row)}, ${MEMBER}, ${now} + ${raw(String(ttlMs * US))}, ${bytes(text)}) ${this.overwrites}`,
      read: nothing,
    };
  }

  read(rows: readonly string[]): Statement<ReadonlyMap<string, string>> {
    const { table, now, rowsOf } = this.common;
    return {
      sql: sql`SELECT name, queue FROM ${table} WHERE name IN (${listOf(rows.map(bytes))}) AND ${IS_NOTE} AND until > ${now}`,
      read: (reply) => new Map(rowsOf(reply).map(({ name, queue }) => [name!, queue!])),
    };
  }

  remove(rows: readonly string[]): Statement<void> {
    return {
      sql: sql`DELETE FROM ${this.common.table} WHERE name IN (${listOf(rows.map(bytes))}) AND ${IS_NOTE}`,
      read: nothing,
    };
  }
}

/** Statements about keys that are the same in each database. */
export abstract class CommonStatements {
  /** Condition: no lock needs the row any more. */
  protected readonly isOld: Sql;

  constructor(private readonly common: SqlTable) {
    const { now } = common;
    this.isOld = sql`until < ${now} - CASE WHEN ${IS_NOTE} THEN 0 ELSE ${SWEPT_AFTER_US} END AND fence < ${now} - ${SWEPT_AFTER_US}`;
  }

  inspect(finalKey: string): Statement<KeyState | null> {
    const { table, now, rowsOf } = this.common;
    return {
      sql: sql`SELECT kind, owner, queue, until - ${now} AS left_us FROM ${table}
WHERE name = ${nameOf(finalKey)} AND (${HEAD} OR until > ${now}) ORDER BY member <> '', since LIMIT ${WITH_HEAD}`,
      read: (reply) => {
        const rows = rowsOf(reply);
        const [head] = rows;
        const holders = rows
          .filter(({ owner, left_us }) => owner !== '' && Number(left_us) > 0)
          .map(holderOf);
        const waiting = waitersIn(head?.['queue'] ?? '');
        if (!head || holders.length + waiting.length === 0) return null;
        return { kind: head['kind'] as 'exclusive' | 'permit', holders, waiting };
      },
    };
  }

  keysFrom(name: string, count: number): Statement<readonly KeyRow[]> {
    const { table, now, rowsOf } = this.common;
    return {
      sql: sql`SELECT name, (until > ${now} OR queue <> '' AND ABS(until) > ${now} - ${ABANDONED_US}) AS live FROM ${table}
WHERE name >= ${bytes(name)} AND ${HEAD} ORDER BY name LIMIT ${raw(String(count))}`,
      read: (reply) => rowsOf(reply).map(({ name: of, live }) => ({ name: of!, isLive: isTrue(live) })),
    };
  }

  probe(finalKey: string): Statement<void> {
    const { table } = this.common;
    return {
      sql: sql`SELECT 1 FROM ${table} WHERE name = ${nameOf(finalKey)} FOR UPDATE NOWAIT`,
      prepared: true,
      read: nothing,
    };
  }

  ping(): Statement<void> {
    return { sql: sql`SELECT 1 FROM ${this.common.table} LIMIT 0`, read: nothing };
  }
}

/**
 * Returns the permits of a key.
 *
 * @param head the row of the key; undefined when there is none that lives
 * @throws {StoreFailure} for a key that is locked as another kind
 */
export const permitStateOf = (
  head: Row | undefined,
  taken: string | null | undefined,
  holders: readonly Row[],
): PermitState | null => {
  if (!head) return null;
  if (head['kind'] !== 'permit')
    throw new StoreFailure(`the key is locked as ${head['kind']}`, 'not-executed', { keyOnly: true });
  const permits = Number(head['permits']);
  return { permits, free: Math.max(0, permits - Number(taken)), holders: holders.map(holderOf) };
};

const holderOf = ({ owner, left_us }: Row): Holder => ({
  owner: owner!,
  count: 1,
  remainingMs: msOf(left_us),
});
