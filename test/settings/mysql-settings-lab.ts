import type { Connection, RowDataPacket } from 'mysql2/promise';
import { MysqlStore } from '../../lib/stores/mysql/mysql.store.js';
import type { SqlStore } from '../../lib/stores/sql/sql.store.js';
import { MysqlServer } from '../support/servers/mysql-server.js';
import type { Setting, SettingsLab } from './settings-lab.js';

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly value: string;
  readonly least: string | null;
  readonly greatest: string | null;
  readonly values: string | null;
}

/**
 * Variables that each session takes over from the server. A variable of sessions alone has no default in the server, so
 * no administrator can set it.
 */
const VARIABLES = `SELECT LOWER(VARIABLE_NAME) AS name, VARIABLE_TYPE AS type, GLOBAL_VALUE AS value, NUMERIC_MIN_VALUE AS least,
NUMERIC_MAX_VALUE AS greatest, ENUM_VALUE_LIST AS \`values\`
FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_SCOPE = 'SESSION' AND READ_ONLY = 'NO' ORDER BY 1`;

/** A text for SET: a number as it is. */
const literalOf = (value: string): string =>
  /^-?[\d.]+$/.test(value) ? value : `'${value.replaceAll("'", "''")}'`;

const valuesOf = ({ type, value, least, greatest, values }: Variable): readonly string[] => {
  const listed = values ? values.split(',') : [];
  if (type === 'FLAGSET') {
    const present = new Set(value.split(','));
    const flags = listed.filter((flag) => flag !== 'default');
    return flags.flatMap((flag) => [`${flag}=on`, `${flag}=off`]).filter((flag) => !present.has(flag));
  }
  if (type === 'SET') return [...listed, ''].filter((one) => one !== value);
  if (listed.length > 0) return listed.filter((one) => one !== value);
  if (least === null || greatest === null) return [];
  return [least, greatest].filter((one) => Number(one) !== Number(value));
};

/** MariaDB. */
export class MysqlSettingsLab implements SettingsLab {
  readonly name = 'MariaDB';
  private readonly before = new Map<string, string>();

  private constructor(
    private readonly server: MysqlServer,
    /** Opened before anything was set. */
    private readonly admin: Connection,
  ) {}

  static async start(): Promise<MysqlSettingsLab> {
    const server = await MysqlServer.start();
    await server.migrate();
    return new MysqlSettingsLab(server, await server.adminConnection('app'));
  }

  async settings(): Promise<readonly Setting[]> {
    const rows = (await this.rows(VARIABLES)) as readonly Variable[];
    return rows.flatMap((variable) => valuesOf(variable).map((value) => ({ name: variable.name, value })));
  }

  async set({ name, value }: Setting): Promise<void> {
    const [row] = await this.rows(`SELECT CAST(@@global.${name} AS CHAR) AS present`);
    await this.admin.query(`SET GLOBAL ${name} = ${literalOf(value)}`);
    if (!this.before.has(name)) this.before.set(name, String(row!['present']));
  }

  async reset(): Promise<void> {
    for (const [name, value] of this.before)
      await this.admin.query(`SET GLOBAL ${name} = ${literalOf(value)}`);
    this.before.clear();
    await this.admin.query('DELETE FROM nest_lock');
  }

  store(pooled: boolean): SqlStore {
    return new MysqlStore({ uri: this.server.uri, pooled });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.admin.destroy();
    await this.server.stop();
  }

  private async rows(statement: string): Promise<readonly RowDataPacket[]> {
    const [rows] = await this.admin.query<RowDataPacket[]>(statement);
    return rows;
  }
}
