import type { Client, QueryResultRow } from 'pg';
import { PostgresStore, type PostgresStoreOptions } from '../../../lib/stores/postgres/postgres.store.js';
import { SqlLab } from '../sql/sql-lab.js';
import { lastRows, PostgresServer, type PostgresServerOptions } from '../servers/postgres-server.js';

export { newKey, rowName } from '../sql/sql-lab.js';

/** The server's clock, as the store reads it. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

/** What only a statement for an acquire of an exclusive lock says. */
export const ACQUIRE = 'exclusive';
/** What only a statement for its release says. */
export const RELEASE = 'RETURNING queue';

/** One PostgreSQL server with the table of the locks. */
export class PostgresLab extends SqlLab<PostgresServer, PostgresStoreOptions> {
  private constructor(
    server: PostgresServer,
    private admin: Client,
  ) {
    super(server, NOW);
  }

  static async start(options?: PostgresServerOptions): Promise<PostgresLab> {
    const server = await PostgresServer.start(options);
    const lab = new PostgresLab(server, await server.adminConnection('app'));
    const store = lab.make();
    await store.migrate();
    await store.close();
    return lab;
  }

  async query(statements: string): Promise<readonly QueryResultRow[]> {
    return lastRows(await this.admin.query(statements));
  }

  /** Connects the administrator again, after a restart of the server. */
  async reconnect(): Promise<void> {
    this.admin = await this.server.adminConnection('app');
  }

  /** Connections of the lock user whose last statement contains a text; `active` ones, or all. */
  async backends(text: string, state = '%'): Promise<readonly number[]> {
    const rows = await this.query(
      `SELECT pid FROM pg_stat_activity WHERE usename = 'app' AND state LIKE '${state}' AND query LIKE '%${text}%'`,
    );
    return rows.map(({ pid }) => Number(pid));
  }

  connections(): Promise<readonly number[]> {
    return this.backends('');
  }

  acquires(): Promise<readonly number[]> {
    return this.backends(ACQUIRE, 'active');
  }

  async blocked(): Promise<number> {
    const rows = await this.query(
      "SELECT 1 FROM pg_stat_activity WHERE usename = 'app' AND wait_event_type = 'Lock'",
    );
    return rows.length;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.closeAll();
    await this.admin.end().catch(() => undefined);
    await super[Symbol.asyncDispose]();
  }

  protected make(options: PostgresStoreOptions = {}): PostgresStore {
    return new PostgresStore({ connectionString: this.server.uri, ...options });
  }
}
