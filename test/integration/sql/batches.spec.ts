import { beforeAll, describe, expect, it } from 'vitest';
import type { Claim, ExclusiveClaim, PermitClaim } from '../../../lib/core/seam/claim.js';
import type { KindStore } from '../../../lib/core/seam/lock-store.js';
import { MysqlStore } from '../../../lib/stores/mysql/mysql.store.js';
import { PostgresStore } from '../../../lib/stores/postgres/postgres.store.js';
import { MysqlLab } from '../../support/mysql/mysql-lab.js';
import { PostgresLab } from '../../support/postgres/postgres-lab.js';
import { newKey, rowName, type SqlLab } from '../../support/sql/sql-lab.js';
import { claimFor } from '../../support/stores/harness.js';

const TOGETHER = 40;

const DATABASES = [
  {
    name: 'MySQL',
    start: () => MysqlLab.start(),
    open: (uri: string) => new MysqlStore({ uri, lanes: 1 }),
  },
  {
    name: 'PostgreSQL',
    start: () => PostgresLab.start(),
    open: (connectionString: string) => new PostgresStore({ connectionString, lanes: 1 }),
  },
];

describe.each(DATABASES)('requests that are sent together, on $name', ({ start, open }) => {
  let lab: SqlLab;
  beforeAll(async () => {
    lab = await start();
    return () => lab[Symbol.asyncDispose]();
  });

  /** A store whose messages to the server are counted while `work` runs, behind one that keeps the lane busy. */
  const messages = async (work: (store: MysqlStore | PostgresStore) => Promise<unknown>): Promise<number> => {
    const proxy = await lab.proxy();
    const store = open(lab.uriThrough(proxy));
    try {
      const first = claimFor(rowName(newKey()));
      await store.kinds.exclusive.acquire(first);
      let count = 0;
      const stop = proxy.onData((_connection, direction) => void (direction === 'toServer' && (count += 1)));
      await Promise.all([store.kinds.exclusive.release(first), work(store)]);
      stop();
      return count;
    } finally {
      await store.close();
    }
  };
  const exclusives = (): ExclusiveClaim[] =>
    Array.from({ length: TOGETHER }, () => claimFor(rowName(newKey())));
  const permits = (): PermitClaim[] => exclusives().map((claim) => ({ ...claim, kind: 'permit', of: 1 }));
  const ofOther = <C extends Claim>(claims: readonly C[]): C[] =>
    claims.map((claim) => ({ ...claim, owner: claimFor('other').owner }));

  it.each(['exclusive', 'permit'] as const)(
    'are one message for releases of %s holds, whether they are there, of others, or gone',
    async (kind) => {
      const some = kind === 'exclusive' ? exclusives : permits;
      const [held, taken, gone] = [some(), some(), some()];
      const { kinds } = lab.store();
      const at = kinds[kind] as KindStore<Claim>;
      await Promise.all([...held, ...taken].map((claim) => at.acquire(claim)));
      const claims = [held, ofOther<Claim>(taken), gone].map((part) => part.slice(0, 20)).flat();
      let replies: unknown[] = [];
      const count = await messages(async (store) => {
        const through = store.kinds[kind] as KindStore<Claim>;
        replies = await Promise.all(claims.map((claim) => through.release(claim)));
      });
      expect(replies).toEqual(claims.map((_, i) => ({ wasHeld: i < 20, othersWaiting: false })));
      expect(count).toBeLessThan(6);
    },
  );

  it('have no second look at the rows of keys that are taken', async () => {
    const claims = exclusives();
    const store = lab.store();
    await Promise.all(claims.map((claim) => store.kinds.exclusive.acquire(claim)));
    const count = await messages(async ({ kinds }) => {
      const replies = await Promise.all(ofOther(claims).map((claim) => kinds.exclusive.acquire(claim)));
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set(['taken']));
    });
    expect(count).toBeLessThan(TOGETHER + 10);
  });
});
