import { readFileSync, readdirSync } from 'node:fs';
import { NOW, PostgresLab } from '../../../support/postgres/postgres-lab.js';
import { lastRows, type PostgresServer } from '../../../support/servers/postgres-server.js';
import type { Database } from '../database.js';
import type { AdminConnection } from './admin-line.js';
import type { FaultyEquipment } from './equipment.js';
import { LabDatabase } from './lab-database.js';
import { postgresRequests } from './requests.js';

const connect = async (server: PostgresServer): Promise<AdminConnection> => {
  const client = await server.adminConnection('app');
  return {
    query: async (statements) => lastRows(await client.query(statements)),
    close: () => void client.end().catch(() => undefined),
  };
};

/** Returns the number of the parent of a process; undefined when the process is gone. */
const parentOf = (pid: string): number | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(/\) \S (\d+)/.exec(stat)?.[1]);
  } catch {
    return undefined;
  }
};

const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number);

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
};

/** A PostgreSQL server, as faults know it. It has one process for each connection. */
export class PostgresDatabase extends LabDatabase<PostgresServer> implements Database {
  readonly shape = 'postgres';
  readonly requests = postgresRequests();
  readonly subscribes = 'LISTEN';

  static async start(equipment: FaultyEquipment): Promise<PostgresDatabase> {
    const lab = await PostgresLab.start({ equipment });
    return new PostgresDatabase(lab, equipment, () => connect(lab.server));
  }

  /** The first process is stopped first, so that it starts no further one. */
  async kill(): Promise<void> {
    const { server } = this.lab;
    await server.kill('SIGSTOP');
    for (const pid of childrenOf(this.lab.server.pid)) signal(pid, 'SIGKILL');
    await server.kill('SIGKILL');
  }

  /** SIGINT is the fast shutdown: clients are not waited for. */
  end(): Promise<void> {
    return this.lab.server.kill('SIGINT');
  }

  async stop(): Promise<void> {
    await this.lab.server.kill('SIGSTOP');
    for (const pid of childrenOf(this.lab.server.pid)) signal(pid, 'SIGSTOP');
  }

  async goOn(): Promise<void> {
    for (const pid of childrenOf(this.lab.server.pid)) signal(pid, 'SIGCONT');
    await this.lab.server.kill('SIGCONT');
  }

  async connections(): Promise<readonly number[]> {
    const rows = await this.query("SELECT pid FROM pg_stat_activity WHERE usename = 'app'");
    return rows.map(({ pid }) => Number(pid));
  }

  async endConnection(id: number): Promise<void> {
    await this.query(`SELECT pg_terminate_backend(${id})`);
  }

  async cancel(id: number): Promise<void> {
    await this.query(`SELECT pg_cancel_backend(${id})`);
  }

  async setReadOnly(isReadOnly: boolean): Promise<void> {
    await this.query(`ALTER SYSTEM SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`);
    await this.query('SELECT pg_reload_conf()');
  }

  async setFull(isFull: boolean): Promise<void> {
    await this.query(`ALTER ROLE app CONNECTION LIMIT ${isFull ? 1 : -1}`);
  }

  async holds(): Promise<readonly { readonly key: string; readonly owner: string }[]> {
    const rows = await this.query(`SELECT name, owner FROM nest_lock WHERE owner <> '' AND until > ${NOW}`);
    return rows.map(({ name, owner }) => ({ key: String(name), owner: String(owner) }));
  }
}
