import type { Client, QueryResultRow } from 'pg';
import { LockManager } from '../../../lib/core/lock-manager.js';
import type { LockEvents } from '../../../lib/core/lock-events.js';
import { LockService } from '../../../lib/lock.service.js';
import { resolveOptions, type RedisLockModuleOptions } from '../../../lib/redis-lock.options.js';
import { PostgresStore, type PostgresStoreOptions } from '../../../lib/stores/postgres/postgres.store.js';
import { until } from '../async.js';
import type { ForeignTransaction } from '../foreign-transaction.js';
import { TcpProxy } from '../tcp-proxy.js';
import { PostgresServer, type PostgresServerOptions } from './postgres-server.js';

export type PostgresLocksOptions = Omit<RedisLockModuleOptions, 'redis' | 'store' | 'interceptor'>;

/** A lock service on a PostgreSQL store, with what it has logged. */
export interface OpenPostgresLocks extends AsyncDisposable {
  readonly locks: LockService;
  readonly manager: LockManager;
  readonly log: readonly string[];
  readonly lost: readonly LockEvents['lost'][];
}

let keys = 0;

/** Returns a key that no other test of this file uses. */
export const newKey = (name = 'key'): string => `${name}_${(keys += 1)}`;

/** Name of a key in the table, with the default prefix. */
export const rowName = (key: string): string => `lock:${key}`;

/** The server's clock, as the store reads it. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

/** A lock service on a store, with the checks and defaults of `LockModule`. */
export const openPostgresLocks = (
  store: PostgresStore,
  options: PostgresLocksOptions = {},
): OpenPostgresLocks => {
  const { settings } = resolveOptions({ shutdownGraceMs: 0, ...options, store });
  const log: string[] = [];
  const say = (line: string) => void log.push(line);
  const manager = new LockManager(store, settings, { log: say, warn: say });
  const locks = new LockService(manager, undefined);
  const lost: LockEvents['lost'][] = [];
  locks.on('lost', (event) => void lost.push(event));
  return { locks, manager, log, lost, [Symbol.asyncDispose]: () => manager.close() };
};

/** What only a statement for an acquire of an exclusive lock says. */
export const ACQUIRE = 'exclusive';
/** What only a statement for its release says. */
export const RELEASE = 'RETURNING queue';

/** One PostgreSQL server with the table of the locks. What was opened through it ends with it. */
export class PostgresLab implements AsyncDisposable {
  private readonly opened: AsyncDisposable[] = [];

  private constructor(
    readonly server: PostgresServer,
    private admin: Client,
  ) {}

  static async start(options?: PostgresServerOptions): Promise<PostgresLab> {
    const server = await PostgresServer.start(options);
    const lab = new PostgresLab(server, await server.adminConnection('app'));
    const store = new PostgresStore({ connectionString: server.uri });
    await store.migrate();
    await store.close();
    return lab;
  }

  /** A store as another process would have it. */
  store(options: PostgresStoreOptions = {}): PostgresStore {
    const store = new PostgresStore({ connectionString: this.server.uri, ...options });
    this.track({ [Symbol.asyncDispose]: () => store.close() });
    return store;
  }

  /** A lock service as another process would have it. */
  open(options: PostgresLocksOptions = {}, storeOptions: PostgresStoreOptions = {}): OpenPostgresLocks {
    const store = new PostgresStore({ connectionString: this.server.uri, ...storeOptions });
    return this.track(openPostgresLocks(store, options));
  }

  async proxy(): Promise<TcpProxy> {
    return this.track(await TcpProxy.start(this.server));
  }

  /** Address of the lock user behind a proxy. */
  uriThrough({ host, port }: TcpProxy): string {
    return `postgres://app:secret@${host}:${port}/app`;
  }

  /** Runs statements as the administrator in the database of the locks, and resolves with the rows of the last one. */
  async query(statements: string): Promise<readonly QueryResultRow[]> {
    const reply: unknown = await this.admin.query(statements);
    return ((Array.isArray(reply) ? reply.at(-1) : reply) as { rows: QueryResultRow[] }).rows;
  }

  /** Connects the administrator again, after a restart of the server. */
  async reconnect(): Promise<void> {
    this.admin = await this.server.adminConnection('app');
  }

  /** Whether a lock of the key is held. */
  async isHeld(key: string): Promise<boolean> {
    const rows = await this.query(
      `SELECT 1 FROM nest_lock WHERE name = '${rowName(key)}' AND owner <> '' AND until > ${NOW}`,
    );
    return rows.length > 0;
  }

  /** Resolves when this number of processes waits for a key. */
  async waiting(key: string, processes = 1): Promise<void> {
    const length = async (): Promise<number> => {
      const [row] = await this.query(
        `SELECT length(queue) AS n FROM nest_lock WHERE name = '${rowName(key)}' AND member = ''`,
      );
      return Number(row?.['n'] ?? 0) / ',0123456789ab'.length;
    };
    await until(async () => (await length()) === processes, {
      what: `${processes} processes wait for ${key}`,
    });
  }

  /** Resolves when the services and the table keep nothing. */
  async nothingLeft(...services: readonly OpenPostgresLocks[]): Promise<void> {
    for (const { locks } of services) {
      await until(() => Object.values(locks.usage).every((size) => size === 0), {
        what: 'the service keeps nothing',
      });
    }
    const left = () => this.query(`SELECT name FROM nest_lock WHERE owner <> '' AND until > ${NOW}`);
    await until(async () => (await left()).length === 0, { what: 'no lock is held' });
  }

  /** Connections of the lock user whose last statement contains a text; `active` ones, or all. */
  async backends(text: string, state = '%'): Promise<readonly number[]> {
    const rows = await this.query(
      `SELECT pid FROM pg_stat_activity WHERE usename = 'app' AND state LIKE '${state}' AND query LIKE '%${text}%'`,
    );
    return rows.map(({ pid }) => Number(pid));
  }

  /** Connections of the lock user. */
  connections(): Promise<readonly number[]> {
    return this.backends('');
  }

  /** Statements for an acquire of an exclusive lock that are under way, with the connection of each. */
  async acquires(): Promise<readonly { readonly id: number }[]> {
    return (await this.backends(ACQUIRE, 'active')).map((id) => ({ id }));
  }

  /** Number of statements that wait for a row that another transaction has locked. */
  async blocked(): Promise<number> {
    const rows = await this.query(
      "SELECT 1 FROM pg_stat_activity WHERE usename = 'app' AND wait_event_type = 'Lock'",
    );
    return rows.length;
  }

  /** A transaction of another user that has run a statement. It is rolled back in the end. */
  async transaction(statement: string): Promise<ForeignTransaction> {
    const connection = await this.server.adminConnection('app');
    await connection.query(`BEGIN; ${statement}`);
    return this.track({
      query: (further) => connection.query(further),
      [Symbol.asyncDispose]: async () => void (await connection.end().catch(() => undefined)),
    });
  }

  /** A transaction of another user, which has the rows of keys locked until it ends. */
  foreignTransaction(...locked: readonly string[]): Promise<ForeignTransaction> {
    const names = locked.map((key) => `'${rowName(key)}'`).join(', ');
    return this.transaction(`SELECT * FROM nest_lock WHERE name IN (${names}) FOR UPDATE`);
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
    await this.admin.end().catch(() => undefined);
    await this.server.stop();
  }

  private async closeAll(): Promise<void> {
    for (const one of this.opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }
}
