import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { MysqlLab } from '../../support/mysql/mysql-lab.js';
import { PostgresLab } from '../../support/postgres/postgres-lab.js';
import { newKey, type SqlLab } from '../../support/sql/sql-lab.js';

const DATABASES = [
  { name: 'MySQL', start: () => MysqlLab.start() },
  { name: 'PostgreSQL', start: () => PostgresLab.start() },
];

describe.each(DATABASES)("with migrate: 'on start' on $name, before the app has started", ({ start }) => {
  let lab: SqlLab;
  beforeAll(async () => {
    lab = await start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  it('a ping waits for the migration', async () => {
    const { locks } = lab.open({}, { table: newKey('new'), migrate: 'on start' });
    await locks.ping();
  });

  it('three apps run the migrations of their database one after the other, under a lock', async () => {
    const [table, log] = [newKey('new'), newKey('log')];
    const apps = Array.from({ length: 3 }, () => lab.open({}, { table, migrate: 'on start' }));
    const migrated = apps.map(({ locks }) =>
      locks.withLock('migrations', { waitMs: 20_000 }, () =>
        lab.query(
          `CREATE TABLE IF NOT EXISTS ${log} (n int); INSERT INTO ${log} SELECT count(*) FROM ${log}`,
        ),
      ),
    );
    await Promise.all(migrated);
    await Promise.all(apps.map(({ manager }) => manager.open()));
    const rows = await lab.query(`SELECT n FROM ${log} ORDER BY n`);
    expect(rows.map(({ n }) => n)).toEqual([0, 1, 2]);
  });
});
