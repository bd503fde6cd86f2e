import type { ConnectionOptions } from 'mysql2';
import type { Runtime } from '../../core/util/runtime.js';
import type { PermitState } from '../../core/seam/reply.js';
import { rehearse } from '../sql/rehearsal.js';
import { raw, sql, SqlFailure, type SqlSession, type Statement } from '../sql/sql.js';
import type { RunStatement, SqlDialect } from '../sql/sql-dialect.js';
import { CommonStatements, MAX_HOLDERS, NoteRows, permitStateOf } from '../sql/sql-statements.js';
import { bytes, HEAD, ID_LENGTH, ID_START, nameOf, nothing } from '../sql/sql-terms.js';
import { SWEPT_ROWS } from '../sql/sweeper.js';
import { checkConnections, checkRights, checkSettings, checkTable, migrateTable } from './mysql-checks.js';
import { MysqlBell, PARKED_S, type Heard } from './mysql-bell.js';
import { MysqlExclusive } from './mysql-exclusive.js';
import { MysqlPermit } from './mysql-permit.js';
import { MysqlSession, type Primary } from './mysql-session.js';
import { recreationOf } from './mysql-migration.js';
import { SET_SESSION } from './mysql-settings.js';
import {
  BELL,
  COMMIT,
  NOW,
  RELEASED,
  rowsOf,
  textRowsOf,
  type MysqlNames,
  type ResultSetHeader,
} from './mysql-terms.js';

/** How often a key is asked about that a caller waits for, in ms. */
const POLL = { minMs: 5, maxMs: 50, liveMaxMs: 250 };

export interface MysqlSettings {
  /** Called for each connection: a password may have changed. A function also shows none. */
  readonly connection: () => ConnectionOptions | Promise<ConnectionOptions>;
  readonly table: string;
  readonly runtime: Runtime;
  /** Whether a proxy shares connections. A connection is no session then: it has no guard, and there are no bells. */
  readonly pooled: boolean;
  readonly timeoutMs: number;
}

/** MySQL and MariaDB, for {@link SqlStore}. */
export class MysqlDialect extends CommonStatements implements SqlDialect {
  readonly name = 'MySQL';
  readonly poll = POLL;
  readonly exclusive: MysqlExclusive;
  readonly permit: MysqlPermit;
  readonly notes: NoteRows;
  private readonly names: MysqlNames;
  private readonly bell: MysqlBell | undefined;
  private readonly primary: Primary = { epoch: 0 };

  constructor(private readonly settings: MysqlSettings) {
    const { runtime, table, pooled } = settings;
    const common = { table: raw(`\`${table}\``), now: NOW, rowsOf: textRowsOf };
    super(common);
    const id = runtime.newId().slice(1 - ID_LENGTH);
    const bell = bytes(`${BELL}${id}`);
    this.names = { table: common.table, me: bytes(`${ID_START}${id}`), bell };
    const ring: Statement<void> = {
      sql: sql`SELECT RELEASE_LOCK(${bell}), GET_LOCK(${bell}, ${PARKED_S})`,
      read: nothing,
    };
    const wait = (finalKey: string): Statement<Heard> => this.exclusive.waitForBell(finalKey);
    this.bell = pooled ? undefined : new MysqlBell({ runtime, connect: () => this.connect(), ring, wait });
    this.exclusive = new MysqlExclusive(this.names, this.bell);
    this.permit = new MysqlPermit(this.names);
    this.notes = new NoteRows(common, OVERWRITES);
  }

  async connect(): Promise<SqlSession> {
    const { runtime, pooled, timeoutMs } = this.settings;
    const { primary } = this;
    const connection = await this.options();
    const guard = `nlg:${runtime.newId().replaceAll('-', '')}`;
    const session = await MysqlSession.connect(connection, { guard, primary, pooled, timeoutMs });
    const timer = runtime.setTimer(() => session.destroy(), timeoutMs, true);
    try {
      await this.setUp(session);
    } catch (failure) {
      session.destroy();
      throw failure;
    } finally {
      runtime.clearTimer(timer);
    }
    return session;
  }

  private options(): Promise<ConnectionOptions> {
    const { runtime, connection, timeoutMs } = this.settings;
    return new Promise((resolve, reject) => {
      const fail = (cause?: unknown): void => {
        const why = cause === undefined ? `did not settle within ${timeoutMs} ms` : 'failed (see cause)';
        reject(new SqlFailure(`The function password ${why}`, 'not-executed', { cause, passing: true }));
      };
      const timer = runtime.setTimer(fail, timeoutMs, true);
      const read = async (): Promise<ConnectionOptions> => connection();
      void read()
        .then(resolve, (cause: unknown) => fail(cause ?? null))
        .finally(() => runtime.clearTimer(timer));
    });
  }

  /** Behind a proxy the session belongs to another app next, so it is left as it is. */
  private async setUp(session: MysqlSession): Promise<void> {
    if (this.settings.pooled) return;
    const format = await session.send({
      sql: sql`${SET_SESSION}; SELECT @@binlog_format AS format LIMIT 1`,
      read: (reply) => rowsOf<{ format: string }>(reply, 1)[0]?.format,
    });
    // A binlog of statements refuses writes in READ COMMITTED.
    const isolation = raw(format === 'STATEMENT' ? 'REPEATABLE READ' : 'READ COMMITTED');
    await session.send({ sql: sql`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`, read: nothing });
    session.sendsAlone = format === 'STATEMENT';
    session.isGuarded = await session
      .send({
        sql: sql`SELECT GET_LOCK(${bytes(session.guard)}, 0) AS got`,
        read: (reply) => rowsOf<{ got: number }>(reply)[0]?.got === 1,
      })
      .catch((failure: unknown) => {
        if (session.isOver) throw failure;
        return false;
      });
  }

  async settle(failed: SqlSession, run: RunStatement): Promise<boolean> {
    const { guard: name, isGuarded } = failed as MysqlSession;
    if (!isGuarded) return false;
    const guard = bytes(name);
    const connection = await run({
      sql: sql`SELECT IS_USED_LOCK(${guard}) AS id`,
      read: (reply) => rowsOf<{ id: number | null }>(reply)[0]!.id,
    });
    if (connection === null) return true;
    // An account may end its own connections. The error of a connection that has ended meanwhile is welcome.
    await run({ sql: sql`KILL CONNECTION ${connection}`, read: nothing }).catch(nothing);
    return run({
      sql: sql`SELECT GET_LOCK(${guard}, 1) AS got, RELEASE_LOCK(${guard})`,
      read: (reply) => rowsOf<{ got: number | null }>(reply)[0]!.got === 1,
    });
  }

  permits(finalKey: string): Statement<PermitState | null> {
    const { table } = this.names;
    const name = nameOf(finalKey);
    return {
      sql: sql`SELECT kind, permits FROM ${table} WHERE name = ${name} AND ${HEAD} AND until > ${NOW};
SELECT COUNT(*) AS count FROM ${table} WHERE name = ${name} AND member > '' AND until > ${NOW};
SELECT owner, until - ${NOW} AS left_us FROM ${table} WHERE name = ${name} AND member > '' AND until > ${NOW} ORDER BY since LIMIT ${MAX_HOLDERS}`,
      read: (reply) => {
        const [[head], [count], holders] = [textRowsOf(reply, 0), textRowsOf(reply, 1), textRowsOf(reply, 2)];
        return permitStateOf(head, count?.['count'], holders);
      },
    };
  }

  /** Permits keep their number, unless none was held. */
  forceUnlock(finalKey: string): Statement<boolean> {
    const { table } = this.names;
    const name = nameOf(finalKey);
    return {
      sql: sql`START TRANSACTION;
SELECT kind FROM ${table} WHERE name = ${name} AND ${HEAD} AND until > ${NOW} FOR UPDATE;
DELETE FROM ${table} WHERE name = ${name} AND member > '' AND until > ${NOW};
UPDATE ${table} SET until = ${RELEASED} WHERE ROW_COUNT() = 0 AND name = ${name} AND ${HEAD} AND until > ${NOW};
${COMMIT}`,
      read: (reply) => {
        const [head] = rowsOf<{ kind: Buffer }>(reply, 1);
        const { affectedRows } = (reply as ResultSetHeader[])[2]!;
        return affectedRows > 0 || head?.kind.toString() === 'exclusive';
      },
    };
  }

  leave(finalKey: string): Statement<boolean> {
    const { table, me } = this.names;
    return {
      sql: sql`UPDATE ${table} SET queue = REPLACE(queue, ${me}, '') WHERE name = ${nameOf(finalKey)} AND ${HEAD} AND LOCATE(${me}, queue) > 0`,
      prepared: true,
      read: (reply) => (reply as ResultSetHeader).affectedRows > 0,
    };
  }

  /** Deletes by name: one statement that deletes a range would meet locks in another order than theirs. */
  async sweep(run: RunStatement): Promise<number> {
    const { table } = this.names;
    const rows = await run({
      sql: sql`SELECT name, member FROM ${table} WHERE ${this.isOld} LIMIT ${SWEPT_ROWS}`,
      read: (reply) => rowsOf<{ name: Buffer; member: Buffer }>(reply),
    });
    for (const { name, member } of rows)
      await run({
        sql: sql`DELETE FROM ${table} WHERE name = ${name} AND member = ${member} AND ${this.isOld}`,
        read: nothing,
      });
    return rows.length;
  }

  checkServer(run: RunStatement): Promise<void> {
    return checkSettings(run);
  }

  async check(run: RunStatement, alone: RunStatement): Promise<readonly string[]> {
    const { table, pooled, runtime, timeoutMs } = this.settings;
    await checkTable(run, table);
    await checkRights(run, table);
    await rehearse(alone, this, runtime, recreationOf(table));
    if (pooled) return [];
    return checkConnections({ name: this.name, runtime, timeoutMs, connect: () => this.connect() });
  }

  close(): void {
    this.bell?.close();
  }

  async migrate(run: RunStatement): Promise<void> {
    await migrateTable(run, this.settings.table);
  }
}

const OVERWRITES = raw('ON DUPLICATE KEY UPDATE until = VALUES(until), queue = VALUES(queue)');
