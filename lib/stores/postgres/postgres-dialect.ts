import type { ClientConfig } from 'pg';
import type { Runtime } from '../../core/util/runtime.js';
import type { PermitState } from '../../core/seam/reply.js';
import type { StoreHost } from '../../core/seam/lock-store.js';
import { rehearse } from '../sql/rehearsal.js';
import { raw, sql, type SqlSession, type Statement } from '../sql/sql.js';
import type { RunStatement, SqlDialect } from '../sql/sql-dialect.js';
import { CommonStatements, MAX_HOLDERS, NoteRows, permitStateOf } from '../sql/sql-statements.js';
import { bytes, HEAD, ID_LENGTH, isTrue, nameOf, nothing } from '../sql/sql-terms.js';
import { SWEPT_ROWS } from '../sql/sweeper.js';
import {
  checkConnection,
  checkSettings,
  checkTable,
  migrateTable,
  type TablePlace,
} from './postgres-checks.js';
import { PostgresExclusive } from './postgres-exclusive.js';
import { messagesOf, PostgresListener } from './postgres-listener.js';
import { quoted, recreationOf } from './postgres-migration.js';
import { PostgresPermit } from './postgres-permit.js';
import { PostgresSession } from './postgres-session.js';
import { SET_SESSION } from './postgres-settings.js';
import {
  CHANNEL,
  literal,
  NOW,
  postgresNames,
  RELEASED,
  rowsOf,
  type PostgresNames,
} from './postgres-terms.js';

/** How often a key is asked about that a caller waits for, in ms. */
const POLL = { minMs: 5, maxMs: 50, liveMaxMs: 1_000 };
/** First version in which a statement can wait for the end of a connection. */
const WAITS_FOR_THE_END = 140_000;

export interface PostgresSettings extends TablePlace {
  /** Functions, so that nothing shows the password. */
  readonly connection: () => ClientConfig;
  /** Undefined where nothing can be heard. */
  readonly listening: (() => ClientConfig) | undefined;
  readonly runtime: Runtime;
  /** Whether a pooler shares connections. Then a connection has no process in the server. */
  readonly pooled: boolean;
  readonly timeoutMs: number;
}

/** PostgreSQL, for {@link SqlStore}. */
export class PostgresDialect extends CommonStatements implements SqlDialect {
  readonly name = 'PostgreSQL';
  readonly poll = POLL;
  readonly exclusive: PostgresExclusive;
  readonly permit: PostgresPermit;
  readonly notes: NoteRows;
  private readonly names: PostgresNames;
  private readonly listener: PostgresListener | undefined;
  storeHost: StoreHost | undefined;

  constructor(private readonly settings: PostgresSettings) {
    const { runtime, table, schema, listening, timeoutMs } = settings;
    const common = { table: raw(quoted(table, schema)), now: NOW, rowsOf };
    super(common);
    const id = runtime.newId().slice(1 - ID_LENGTH);
    this.names = postgresNames(common.table, table, id);
    this.listener =
      listening &&
      new PostgresListener({
        runtime,
        timeoutMs,
        channels: { shared: table, own: `${CHANNEL}${id}` },
        connect: () => PostgresSession.connect(listening(), settings),
        notify: (payload, channel) => this.notify(payload, channel),
        warn: (sentence) => this.storeHost?.warn(sentence),
      });
    this.exclusive = new PostgresExclusive(this.names, this.listener?.wakeUps(true));
    this.permit = new PostgresPermit(this.names, this.listener?.wakeUps(false));
    this.notes = new NoteRows(common, OVERWRITES, this.listener && messagesOf(this.listener, this.names));
  }

  connect(): Promise<PostgresSession> {
    const { connection, pooled } = this.settings;
    return PostgresSession.connect(connection(), this.settings, pooled ? undefined : FIRST);
  }

  /** A role may always end its own connections. The start tells a connection from a later one with the same process. */
  async settle(failed: SqlSession, run: RunStatement): Promise<boolean> {
    const { backend } = failed as PostgresSession;
    if (!backend) return false;
    const end =
      backend.version < WAITS_FOR_THE_END
        ? raw('pg_terminate_backend(pid)')
        : raw('pg_terminate_backend(pid, 1000)');
    return run({
      sql: sql`SELECT ${end} AS ended FROM pg_stat_activity WHERE pid = ${backend.pid} AND ${STARTED_US} = ${backend.startedUs}`,
      read: (reply) => {
        const [row] = rowsOf(reply);
        return !row || (backend.version >= WAITS_FOR_THE_END && isTrue(row['ended']));
      },
    });
  }

  permits(finalKey: string): Statement<PermitState | null> {
    const { table } = this.names;
    const members = sql`FROM ${table} m WHERE m.name = h.name AND m.member > '' AND m.until > ${NOW}`;
    return {
      sql: sql`SELECT h.kind, h.permits, (SELECT count(*) ${members}) AS taken, held.owner, held.until - ${NOW} AS left_us
FROM ${table} h LEFT JOIN LATERAL (SELECT m.owner, m.until ${members} ORDER BY m.since LIMIT ${MAX_HOLDERS}) held ON true
WHERE h.name = ${nameOf(finalKey)} AND h.${HEAD} AND h.until > ${NOW}`,
      read: (reply) => {
        const rows = rowsOf(reply);
        const [head] = rows;
        const holders = rows.filter(({ owner }) => owner !== null);
        return permitStateOf(head, head?.['taken'], holders);
      },
    };
  }

  /** Permits keep their number, unless none was held. The second statement sees what came before the lock of the row. */
  forceUnlock(finalKey: string): Statement<boolean> {
    const { table, notify, pass } = this.names;
    const name = literal(nameOf(finalKey));
    const head = sql`h.name = ${name} AND h.${HEAD} AND h.until > ${NOW}`;
    return {
      sql: sql`SELECT 1 FROM ${table} h WHERE ${head} FOR UPDATE;
WITH gone AS (DELETE FROM ${table} m WHERE m.name = ${name} AND m.member > '' AND m.until > ${NOW} RETURNING 1),
ended AS (UPDATE ${table} h SET until = ${RELEASED} WHERE ${head} AND NOT EXISTS (SELECT 1 FROM gone))
SELECT h.kind = 'exclusive' OR EXISTS (SELECT 1 FROM gone) AS held, CASE WHEN h.queue <> '' AND h.kind = 'permit' THEN ${notify(name)} END,
${pass(name, raw("h.kind = 'exclusive'"))} FROM ${table} h WHERE ${head}`,
      read: (reply) => isTrue(rowsOf(reply, 1)[0]?.['held']),
    };
  }

  leave(finalKey: string): Statement<boolean> {
    const { table, me, pass } = this.names;
    const name = nameOf(finalKey);
    return {
      sql: sql`UPDATE ${table} SET queue = replace(queue, ${me}, '') WHERE name = ${name} AND ${HEAD} AND strpos(queue, ${me}) > 0
RETURNING ${pass(sql`${name}::text`, sql`until <= ${NOW}`)}`,
      prepared: true,
      read: () => false,
    };
  }

  sweep(run: RunStatement): Promise<number> {
    const { table } = this.names;
    return run({
      sql: sql`WITH swept AS (DELETE FROM ${table} WHERE (name, member) IN (
SELECT name, member FROM ${table} WHERE ${this.isOld} LIMIT ${SWEPT_ROWS} FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) AS count FROM swept`,
      read: (reply) => Number(rowsOf(reply)[0]!['count']),
    });
  }

  async checkServer(run: RunStatement): Promise<void> {
    if (!this.settings.pooled) await checkConnection(() => this.connect());
    await checkSettings(run);
  }

  async check(run: RunStatement, alone: RunStatement): Promise<readonly string[]> {
    await checkTable(run, this.settings);
    const { table, schema, runtime } = this.settings;
    await rehearse(alone, this, runtime, recreationOf(table, schema));
    return [];
  }

  async migrate(run: RunStatement): Promise<void> {
    await migrateTable(run, this.settings);
  }

  close(): void {
    this.listener?.close();
  }

  private async notify(payload: string, channel: string): Promise<void> {
    const session = await this.connect();
    try {
      await session.send({
        sql: sql`SELECT pg_notify(${bytes(channel)}::text, ${bytes(payload)}::text)`,
        read: nothing,
      });
    } finally {
      session.destroy();
    }
  }
}

const OVERWRITES = raw(
  'ON CONFLICT (name, member) DO UPDATE SET until = excluded.until, queue = excluded.queue',
);

/** Start of a connection, in µs since 1970. */
const STARTED_US = raw('(extract(epoch FROM backend_start) * 1000000)::bigint');

/** Makes a connection independent of the defaults of its role, and returns its identity. */
const FIRST: Statement<NonNullable<PostgresSession['backend']>> = {
  sql: sql`${SET_SESSION};
SELECT pid, ${STARTED_US} AS started_us, current_setting('server_version_num') AS version FROM pg_stat_activity WHERE pid = pg_backend_pid()`,
  read: (reply) => {
    const { pid, started_us, version } = rowsOf(reply, 1)[0]!;
    return { pid: Number(pid), startedUs: Number(started_us), version: Number(version) };
  },
};
