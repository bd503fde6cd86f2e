import { beforeAll, describe, expect, it } from 'vitest';
import type { PermitClaim } from '../../../lib/core/seam/claim.js';
import { until } from '../../support/async.js';
import { MysqlLab } from '../../support/mysql/mysql-lab.js';
import { PostgresLab } from '../../support/postgres/postgres-lab.js';
import { newKey, rowName, type SqlLab } from '../../support/sql/sql-lab.js';
import { claimFor } from '../../support/stores/harness.js';

const OTHER_ROWS = 4_000;
const TOGETHER = 40;
/** Also reads the list of what is wanted, several times. A scan of the table would read 100 rows for each key. */
const MAX_ROWS = 20;

const OTHERS = Array.from({ length: OTHER_ROWS }, (_, i) => `('other ${i}', 'exclusive', 'o', 1, 0, 1)`).join(
  ', ',
);

const DATABASES = [
  {
    name: 'MySQL',
    start: () => MysqlLab.start(),
    rowsRead:
      "SELECT SUM(VARIABLE_VALUE) AS n FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ('HANDLER_READ_KEY', 'HANDLER_READ_NEXT', 'HANDLER_READ_RND_NEXT')",
  },
  {
    name: 'PostgreSQL',
    start: () => PostgresLab.start(),
    rowsRead:
      'SELECT t.seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid) AS n FROM pg_stat_user_tables t',
  },
];

describe.each(DATABASES)('on $name', ({ start, rowsRead }) => {
  let lab: SqlLab;
  beforeAll(async () => {
    lab = await start();
    return () => lab[Symbol.asyncDispose]();
  });

  const permit = (key: string): PermitClaim => ({ ...claimFor(rowName(key)), kind: 'permit', of: 3 });

  it('requests that are sent together read their own rows, in a table that was never analyzed', async () => {
    const keys = Array.from({ length: TOGETHER }, () => newKey());
    const claims = keys.map((key) => claimFor(rowName(key)));
    const permits = keys.map((key) => permit(`${key}-permit`));
    await lab.query(`INSERT INTO nest_lock (name, kind, owner, since, until, fence) VALUES ${OTHERS}`);
    const store = lab.store({ lanes: 1 });
    const { exclusive, permit: permitKind } = store.kinds;
    for (const claim of permits) expect((await permitKind.acquire(claim)).status).toBe('granted');
    const before = Number((await lab.query(rowsRead))[0]!['n']);
    // A server makes its final plan of a statement after some times.
    const times = 8;
    for (let i = 0; i < times; i += 1) {
      const grants = await Promise.all(claims.map((claim) => exclusive.acquire(claim)));
      expect(new Set(grants.map(({ status }) => status))).toEqual(new Set(['granted']));
      await exclusive.extendMany(claims);
      await permitKind.extendMany(permits);
      await Promise.all(claims.map((claim) => exclusive.release(claim)));
    }
    await Promise.all(permits.map((claim) => permitKind.release(claim)));
    await store.close();
    // PostgreSQL counts what a connection has read before that ends.
    await until(async () => (await lab.connections()).length === 0, { what: 'the connections have ended' });
    const read = Number((await lab.query(rowsRead))[0]!['n']) - before;
    const requests = 4 * TOGETHER * times;
    expect(read).toBeGreaterThan(requests);
    expect(read / requests).toBeLessThan(MAX_ROWS);
  });
});
