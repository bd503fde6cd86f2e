import type { Client, QueryResultRow } from 'pg';
import { PostgresStore } from '../../lib/stores/postgres/postgres.store.js';
import type { SqlStore } from '../../lib/stores/sql/sql.store.js';
import { PostgresServer } from '../support/servers/postgres-server.js';
import type { Setting, SettingsLab } from './settings-lab.js';

/** Settings that any user may change for itself, and so any role may have as its defaults. */
const SETTINGS = `SELECT name, vartype AS type, setting AS value, min_val AS least, max_val AS greatest, enumvals AS values
FROM pg_settings WHERE context = 'user' ORDER BY name`;

const BOOLEANS = ['off', 'on'];

const valuesOf = ({ type, value, least, greatest, values }: QueryResultRow): readonly string[] => {
  if (type === 'bool') return BOOLEANS.filter((one) => one !== value);
  if (type === 'enum') return (values as string[]).filter((one) => one !== value);
  if (least === null) return [];
  return [least as string, greatest as string].filter((one) => Number(one) !== Number(value));
};

/** PostgreSQL. The settings are those of the role. */
export class PostgresSettingsLab implements SettingsLab {
  readonly name = 'PostgreSQL';

  private constructor(
    private readonly server: PostgresServer,
    private readonly admin: Client,
  ) {}

  static async start(): Promise<PostgresSettingsLab> {
    const server = await PostgresServer.start();
    const lab = new PostgresSettingsLab(server, await server.adminConnection('app'));
    const store = lab.store(false);
    await store.migrate();
    await store.close();
    return lab;
  }

  async settings(): Promise<readonly Setting[]> {
    const { rows } = await this.admin.query<QueryResultRow>(SETTINGS);
    return rows.flatMap((row) => valuesOf(row).map((value) => ({ name: String(row['name']), value })));
  }

  async set({ name, value }: Setting): Promise<void> {
    await this.admin.query(`ALTER ROLE app SET ${name} = '${value}'`);
  }

  async reset(): Promise<void> {
    await this.admin.query('ALTER ROLE app RESET ALL');
    await this.admin.query('DELETE FROM nest_lock');
  }

  store(pooled: boolean): SqlStore {
    return new PostgresStore({ connectionString: this.server.uri, pooled });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.admin.end();
    await this.server.stop();
  }
}
