import type { RowDataPacket } from 'mysql2/promise';
import { LockManager } from '../../../lib/core/lock-manager.js';
import type { LockEvents } from '../../../lib/core/lock-events.js';
import { LockService } from '../../../lib/lock.service.js';
import { resolveOptions, type RedisLockModuleOptions } from '../../../lib/redis-lock.options.js';
import { MysqlStore, type MysqlStoreOptions } from '../../../lib/stores/mysql/mysql.store.js';
import { until } from '../async.js';
import type { ForeignTransaction } from '../foreign-transaction.js';
import { TcpProxy } from '../tcp-proxy.js';
import { MysqlServer, type MysqlServerOptions } from './mysql-server.js';

export type MysqlLocksOptions = Omit<RedisLockModuleOptions, 'redis' | 'store' | 'interceptor'>;

/** A lock service on a MySQL store, with its store and what it has logged. */
export interface OpenMysqlLocks extends AsyncDisposable {
  readonly locks: LockService;
  readonly manager: LockManager;
  readonly store: MysqlStore;
  readonly log: readonly string[];
  readonly lost: readonly LockEvents['lost'][];
}

/** Makes a lock service on a store, with the checks and defaults of `LockModule`. */
export const openMysqlLocks = (store: MysqlStore, options: MysqlLocksOptions = {}): OpenMysqlLocks => {
  const { settings } = resolveOptions({ shutdownGraceMs: 0, ...options, store });
  const log: string[] = [];
  const say = (line: string) => void log.push(line);
  const manager = new LockManager(store, settings, { log: say, warn: say });
  const locks = new LockService(manager, undefined);
  const lost: LockEvents['lost'][] = [];
  locks.on('lost', (event) => void lost.push(event));
  return { locks, manager, store, log, lost, [Symbol.asyncDispose]: () => manager.close() };
};

let keys = 0;

/** Returns a key that no other test of this file uses. */
export const newKey = (name = 'key'): string => `${name}-${(keys += 1)}`;

/** Name of a key in the table, with the default prefix. */
export const rowName = (key: string): string => `lock:${key}`;

/** The server's clock, as the store reads it. */
export const NOW = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** One row of the table, as text. */
export interface LockRow {
  readonly name: string;
  readonly member: string;
  readonly kind: string;
  readonly owner: string;
  readonly queue: string;
  readonly fence: number;
  readonly leftMs: number;
}

/** One MariaDB server with the table of the locks. What was opened through it ends with it. */
export class MysqlLab implements AsyncDisposable {
  private readonly opened: AsyncDisposable[] = [];

  private constructor(readonly server: MysqlServer) {}

  static async start(options?: MysqlServerOptions): Promise<MysqlLab> {
    const server = await MysqlServer.start(options);
    await server.migrate();
    return new MysqlLab(server);
  }

  /** A store as another process would have it. */
  store(options: MysqlStoreOptions = {}): MysqlStore {
    const store = new MysqlStore({ uri: this.server.uri, ...options });
    this.track({ [Symbol.asyncDispose]: () => store.close() });
    return store;
  }

  /** A lock service as another process would have it. */
  open(options?: MysqlLocksOptions, storeOptions: MysqlStoreOptions = {}): OpenMysqlLocks {
    return this.track(openMysqlLocks(new MysqlStore({ uri: this.server.uri, ...storeOptions }), options));
  }

  async proxy(server: MysqlServer = this.server): Promise<TcpProxy> {
    return this.track(await TcpProxy.start(server));
  }

  /** Address of the lock user behind a proxy. */
  uriThrough({ host, port }: TcpProxy): string {
    return `mysql://app:secret@${host}:${port}/app`;
  }

  /** Runs statements as the administrator in the database of the locks. */
  query(statements: string): Promise<readonly RowDataPacket[]> {
    return this.server.admin(`USE app; ${statements}`);
  }

  /** All rows of a key, the row of the key itself first. */
  async rows(key: string): Promise<readonly LockRow[]> {
    const found = await this.query(
      `SELECT CONVERT(name USING utf8mb4) AS name, CONVERT(member USING utf8mb4) AS member, CONVERT(kind USING utf8mb4) AS kind,
CONVERT(owner USING utf8mb4) AS owner, CONVERT(queue USING utf8mb4) AS queue, fence, (until - ${NOW}) / 1000 AS leftMs
FROM nest_lock WHERE name = '${rowName(key)}' ORDER BY member`,
    );
    return found.map((row) => ({ ...(row as LockRow), leftMs: Number(row['leftMs']) }));
  }

  /** Whether a lock of the key is held. */
  async isHeld(key: string): Promise<boolean> {
    return (await this.rows(key)).some(({ owner, leftMs }) => owner !== '' && leftMs > 0);
  }

  /** Number of processes in the wait queue of a key. */
  async queueLength(key: string): Promise<number> {
    const [row] = await this.rows(key);
    return (row?.queue.length ?? 0) / ',0123456789ab'.length;
  }

  async waiting(key: string, processes = 1): Promise<void> {
    await until(async () => (await this.queueLength(key)) >= processes, {
      what: `${processes} processes wait for ${key}`,
    });
  }

  /** Statements that the lock user has under way, with the connection of each. */
  async underWay(like: string): Promise<readonly { readonly id: number; readonly info: string }[]> {
    const rows = await this.query(
      `SELECT ID AS id, CONVERT(INFO USING utf8mb4) AS info FROM information_schema.PROCESSLIST
WHERE USER <> 'root' AND COMMAND IN ('Query', 'Execute') AND INFO LIKE '${like}'`,
    );
    return rows as unknown as { id: number; info: string }[];
  }

  /** Statements for an acquire that are under way, with the connection of each. */
  acquires(): Promise<readonly { readonly id: number }[]> {
    return this.underWay('%bell = %');
  }

  /** Connections of the lock user. */
  async connections(): Promise<readonly number[]> {
    const rows = await this.query(
      "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE USER NOT IN ('root', 'system user', 'event_scheduler', 'unauthenticated user')",
    );
    return rows.map(({ id }) => Number(id));
  }

  /** Number of statements that wait for a row that another transaction has locked. */
  async blocked(): Promise<number> {
    const [row] = await this.query("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'");
    return Number(row!['Value']);
  }

  /** Number of deadlocks that the server has ended. */
  async deadlocks(): Promise<number> {
    const [row] = await this.query(
      "SELECT COUNT AS n FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'",
    );
    return Number(row!['n']);
  }

  /** A transaction of another user that has run a statement. It is rolled back in the end. */
  async transaction(statement: string): Promise<ForeignTransaction> {
    const connection = await this.server.adminConnection();
    await connection.query(`USE app; START TRANSACTION; ${statement}`);
    return this.track({
      query: (further) => connection.query(further),
      [Symbol.asyncDispose]: async () => void (await connection.end().catch(() => undefined)),
    });
  }

  /** A transaction of another user, which has the rows of a key locked until it ends. */
  foreignTransaction(key: string): Promise<ForeignTransaction> {
    return this.transaction(`SELECT * FROM nest_lock WHERE name = '${rowName(key)}' FOR UPDATE`);
  }

  /** Resolves when services have nothing, and no lock is held. */
  async nothingLeft(...services: readonly OpenMysqlLocks[]): Promise<void> {
    for (const { locks } of services) {
      await until(() => Object.values(locks.usage).every((size) => size === 0), {
        what: 'the service keeps nothing',
      });
    }
    const left = async () => this.query(`SELECT name FROM nest_lock WHERE owner <> '' AND until > ${NOW}`);
    await until(async () => (await left()).length === 0, { what: 'no lock is held' });
  }

  /** Ends `one` with the test. */
  track<T extends AsyncDisposable>(one: T): T {
    this.opened.push(one);
    return one;
  }

  /** Ends what the last test opened, newest first, and empties the table. */
  async reset(): Promise<void> {
    await this.closeAll();
    await this.query('DELETE FROM nest_lock');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeAll();
    await this.server.stop();
  }

  private async closeAll(): Promise<void> {
    for (const one of this.opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }
}
