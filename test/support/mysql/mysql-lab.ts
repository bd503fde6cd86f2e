import type { RowDataPacket } from 'mysql2/promise';
import { MysqlStore, type MysqlStoreOptions } from '../../../lib/stores/mysql/mysql.store.js';
import { SqlLab } from '../sql/sql-lab.js';
import { MysqlServer, type MysqlServerOptions } from '../servers/mysql-server.js';

export { newKey, rowName } from '../sql/sql-lab.js';

/** The server's clock, as the store reads it. */
export const NOW = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** What only a statement for an acquire of an exclusive lock says. */
export const ACQUIRE = 'bell =';

/** One MariaDB server with the table of the locks. */
export class MysqlLab extends SqlLab<MysqlServer, MysqlStoreOptions> {
  static async start(options?: MysqlServerOptions): Promise<MysqlLab> {
    const server = await MysqlServer.start(options);
    await server.migrate();
    return new MysqlLab(server, NOW);
  }

  query(statements: string): Promise<readonly RowDataPacket[]> {
    return this.server.admin(`USE app; ${statements}`);
  }

  /** Connections in which the lock user has such a statement under way. */
  async underWay(like: string): Promise<readonly number[]> {
    const rows = await this.query(
      `SELECT ID AS id FROM information_schema.PROCESSLIST
WHERE USER <> 'root' AND COMMAND IN ('Query', 'Execute') AND INFO LIKE '${like}'`,
    );
    return rows.map(({ id }) => Number(id));
  }

  acquires(): Promise<readonly number[]> {
    return this.underWay(`%${ACQUIRE} %`);
  }

  async connections(): Promise<readonly number[]> {
    const rows = await this.query(
      "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE USER NOT IN ('root', 'system user', 'event_scheduler', 'unauthenticated user')",
    );
    return rows.map(({ id }) => Number(id));
  }

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

  protected make(options: MysqlStoreOptions = {}): MysqlStore {
    return new MysqlStore({ uri: this.server.uri, ...options });
  }
}
