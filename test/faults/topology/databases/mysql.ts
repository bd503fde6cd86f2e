import { tmpdir } from 'node:os';
import { MysqlLab, NOW } from '../../../support/mysql/mysql-lab.js';
import { lastRows, type MysqlServer } from '../../../support/servers/mysql-server.js';
import type { Database } from '../database.js';
import type { AdminConnection } from './admin-line.js';
import type { FaultyEquipment } from './equipment.js';
import { LabDatabase } from './lab-database.js';
import { mysqlRequests } from './requests.js';

const MAX_CONNECTIONS = 151;
/** The least that the server accepts: the workers have more. */
const FULL = 10;

const connect = async (server: MysqlServer): Promise<AdminConnection> => {
  const connection = await server.adminConnection();
  connection.on('error', () => undefined);
  await connection.query('USE app');
  return {
    query: (statements) => lastRows(connection, statements),
    close: () => connection.destroy(),
  };
};

/** A MariaDB server, as faults know it. Each commit waits for its flush. */
export class MysqlDatabase extends LabDatabase<MysqlServer> implements Database {
  readonly shape = 'mysql';
  readonly requests = mysqlRequests();
  readonly subscribes = 'AS rang';

  static async start(equipment: FaultyEquipment): Promise<MysqlDatabase> {
    const lab = await MysqlLab.start({
      // In /dev/shm MariaDB maps its log into memory, and flushes nothing.
      root: tmpdir(),
      args: ['--innodb-flush-log-at-trx-commit=1'],
      equipment,
    });
    return new MysqlDatabase(lab, equipment, () => connect(lab.server));
  }

  kill(): Promise<void> {
    return this.lab.server.kill('SIGKILL');
  }

  end(): Promise<void> {
    return this.lab.server.kill('SIGTERM');
  }

  stop(): Promise<void> {
    return this.lab.server.kill('SIGSTOP');
  }

  goOn(): Promise<void> {
    return this.lab.server.kill('SIGCONT');
  }

  async connections(): Promise<readonly number[]> {
    const rows = await this.query(
      "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE USER NOT IN ('root', 'system user', 'event_scheduler', 'unauthenticated user')",
    );
    return rows.map(({ id }) => Number(id));
  }

  endConnection(id: number): Promise<void> {
    return this.ending(`KILL CONNECTION ${id}`);
  }

  cancel(id: number): Promise<void> {
    return this.ending(`KILL QUERY ${id}`);
  }

  async setReadOnly(isReadOnly: boolean): Promise<void> {
    await this.query(`SET GLOBAL read_only = ${isReadOnly ? 1 : 0}`);
  }

  async setFull(isFull: boolean): Promise<void> {
    await this.query(`SET GLOBAL max_connections = ${isFull ? FULL : MAX_CONNECTIONS}`);
  }

  async holds(): Promise<readonly { readonly key: string; readonly owner: string }[]> {
    const rows = await this.query(
      `SELECT CONVERT(name USING utf8mb4) AS name, CONVERT(owner USING utf8mb4) AS owner FROM nest_lock
WHERE owner <> '' AND until > ${NOW}`,
    );
    return rows.map(({ name, owner }) => ({ key: String(name), owner: String(owner) }));
  }

  /** The error of a connection that has ended meanwhile is welcome. */
  private async ending(statement: string): Promise<void> {
    await this.query(statement).catch(() => undefined);
  }
}
