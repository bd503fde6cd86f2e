import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { MysqlLab } from '../../support/mysql/mysql-lab.js';
import { PostgresLab } from '../../support/postgres/postgres-lab.js';
import type { SqlLab } from '../../support/sql/sql-lab.js';

const DATABASES = [
  { name: 'MySQL', start: () => MysqlLab.start() },
  { name: 'PostgreSQL', start: () => PostgresLab.start() },
];

describe.each(DATABASES)('ping on $name', ({ start }) => {
  let lab: SqlLab;
  beforeAll(async () => {
    lab = await start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  it('fails while the table of the locks is not there, as locks do', async () => {
    const { locks } = lab.open();
    await locks.ping();
    await lab.query('ALTER TABLE nest_lock RENAME TO gone');
    try {
      await expect(locks.ping()).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    } finally {
      await lab.query('ALTER TABLE gone RENAME TO nest_lock');
    }
    await expect(locks.ping()).resolves.toBeUndefined();
  });
});
