import assert from 'node:assert/strict';
import type { SqlStage } from '../../faults/on-sql/sql-stage.js';
import type { AcquireReply } from '../../../lib/core/seam/reply.js';
import { nameOf } from '../../../lib/stores/sql/sql-terms.js';
import { until } from '../../support/async.js';
import type { Edit } from '../source/edit.js';
import type { SqlMistake } from './sql.mistakes.js';

type Store = Awaited<ReturnType<SqlStage['store']>>;

/** The same mistake in both. */
const both = (edit: Edit): SqlMistake['edits'] => ({ mysql: [edit], postgres: [edit] });

/** What a database calls a key whose bytes were passed as their digits. */
const NAMES_AS_DIGITS: Edit = {
  in: 'sql-terms:repliesOf',
  find: 'nameTextOf(claim.finalKey)',
  replace: "`\\\\x${Buffer.from(claim.finalKey).toString('hex')}`",
};

/** Creates rows of keys, which are free. */
const rowsOf = async (stage: SqlStage, ...keys: readonly string[]): Promise<void> => {
  const { exclusive } = (await stage.store()).kinds;
  for (const finalKey of keys) {
    const claim = stage.claim({ finalKey });
    await exclusive.acquire(claim);
    await exclusive.release(claim);
  }
};

/** Requests keys as one statement: what is requested while the only connection is opened. */
const together = (store: Store, stage: SqlStage, keys: readonly string[]): readonly Promise<AcquireReply>[] =>
  keys.map((finalKey) => store.kinds.exclusive.acquire(stage.claim({ finalKey })));

const two = ({ key }: SqlStage): [string, string] => [`${key}-a`, `${key}-b`];

/** Keys whose text could be read otherwise on the way. */
const oddKeys = ({ key }: SqlStage): string[] =>
  [`a'b`, 'a"b', 'a\\b', '{a,b}', 'NULL', '\\x6162', '🔒', ' ', 'ä'].map((odd) => `${key}${odd}`);

/** One mistake for each rule of requests that are one statement, as far as it is in the statements. */
export const SQL_TOGETHER_MISTAKES: readonly SqlMistake[] = [
  {
    name: 'a key is granted to each of the requests for its row',
    edits: {
      postgres: [
        {
          in: 'PostgresExclusive.takeFreeOnes',
          find: 'ON got.name = w.name AND got.owner = w.owner',
          replace: 'ON got.name = w.name',
        },
      ],
      mysql: [
        {
          in: 'sql-terms:repliesOf',
          find: 'read(found.get(`${claim.owner} ${nameTextOf(claim.finalKey)}`), claim)',
          replace: 'read(rows.find(({ name }) => name === nameTextOf(claim.finalKey)), claim)',
        },
      ],
    },
    async play(stage) {
      // The name of a long key is its digest.
      const long = `${stage.key}${'x'.repeat(600)}`;
      const keys = [long, nameOf(long).toString()];
      await rowsOf(stage, long);
      const replies = await Promise.all(together(await stage.store({ lanes: 1 }), stage, keys));
      assert.deepEqual(replies.map(({ status }) => status).sort(), ['granted', 'taken']);
    },
  },
  {
    name: 'a request that is not in the reply is taken',
    edits: both({
      in: 'Lane.replied',
      find: 'return this.repeat(request, value === NO_ROW ? by.inserting : undefined);',
      replace: `this.unsent.forget(request);
return request.resolve({ status: 'taken', retryInMs: 50 } as never);`,
    }),
    async play(stage) {
      const [locked, free] = two(stage);
      await rowsOf(stage, locked, free);
      const foreign = await stage.transaction(`SELECT * FROM nest_lock WHERE name = '${locked}' FOR UPDATE`);
      const [first, second] = together(await stage.store({ lanes: 1 }), stage, [locked, free]);
      assert.equal((await second!).status, 'granted');
      await foreign[Symbol.asyncDispose]();
      assert.equal((await first!).status, 'granted');
    },
  },
  {
    name: 'a batch waits for a row that others have locked',
    edits: {
      postgres: [
        {
          in: 'lockedRow',
          find: ' FOR UPDATE SKIP LOCKED',
          replace: ' FOR UPDATE',
        },
      ],
      mysql: [{ in: 'MysqlExclusive.takeFreeOnes', find: 'FOR UPDATE SKIP LOCKED', replace: 'FOR UPDATE' }],
    },
    async play(stage) {
      const [locked, free] = two(stage);
      await rowsOf(stage, locked, free);
      await stage.transaction(`SELECT * FROM nest_lock WHERE name = '${locked}' FOR UPDATE`);
      const [first, second] = together(await stage.store({ lanes: 1 }), stage, [locked, free]);
      first!.catch(() => undefined);
      assert.equal(await stage.blockedDuring(second!), false);
    },
  },
  {
    name: 'new rows are inserted in the transaction that takes old ones',
    edits: {
      postgres: [
        {
          in: 'PostgresExclusive.takeFreeOnes',
          find: 'SELECT w.name, w.owner, got.fence,',
          replace: `, new AS (INSERT INTO \${table} (name, kind, owner, until) SELECT w.name, 'exclusive', w.owner, \${NOW} + w.lease FROM wanted w
WHERE NOT EXISTS (SELECT 1 FROM \${table} l WHERE l.name = w.name) ORDER BY w.name ON CONFLICT DO NOTHING)
SELECT w.name, w.owner, got.fence,`,
        },
      ],
    },
    async play(stage) {
      const [missing, free] = two(stage);
      await rowsOf(stage, free);
      // Another process inserts the row of the first one.
      await stage.transaction(`INSERT INTO nest_lock (name) VALUES ('${missing}')`);
      const [first, second] = together(await stage.store({ lanes: 1 }), stage, [missing, free]);
      first!.catch(() => undefined);
      assert.equal(await stage.blockedDuring(second!), false);
    },
  },
  {
    name: 'new rows are inserted in the order of the requests',
    edits: {
      mysql: [{ in: 'MysqlExclusive.insert', find: 'ORDER BY v.n', replace: '' }],
    },
    async play(stage) {
      const [first, second] = two(stage);
      const foreign = await stage.transaction(`INSERT INTO nest_lock (name) VALUES ('${first}')`);
      const requests = together(await stage.store({ lanes: 1 }), stage, [second, first]);
      const ends = Promise.allSettled(requests);
      await stage.blocked(1);
      const isFree = await stage
        .transaction(`SET innodb_lock_wait_timeout = 0; INSERT INTO nest_lock (name) VALUES ('${second}')`)
        .then(
          (other) => other[Symbol.asyncDispose]().then(() => true),
          () => false,
        );
      await foreign[Symbol.asyncDispose]();
      await ends;
      assert.ok(isFree);
    },
  },
  {
    name: 'a release that keeps a key for a time ends it like the others',
    edits: both({
      in: 'SqlKind.release',
      find: 'const by = keepForMs > 0 ? statements.keeps : statements.releases;',
      replace: 'const by = statements.releases;',
    }),
    async play(stage) {
      const claims = two(stage).map((finalKey) => stage.claim({ finalKey }));
      const store = await stage.store({ lanes: 1 });
      const { exclusive } = store.kinds;
      await Promise.all(claims.map((claim) => exclusive.acquire(claim)));
      const before = exclusive.acquire(stage.claim());
      await Promise.all([before, ...claims.map((claim) => exclusive.release(claim, { keepForMs: 30_000 }))]);
      for (const { finalKey } of claims) assert.notEqual(await store.inspect(finalKey), null);
    },
  },
  {
    name: 'a transaction that keeps keys for a time does not wait for the disk',
    edits: {
      postgres: [
        {
          in: 'PostgresExclusive.keeps',
          find: "sql`${NOW} + m.lease`, raw('')",
          replace: 'sql`${NOW} + m.lease`, NO_FLUSH',
        },
      ],
    },
    async play(stage) {
      const claims = two(stage).map((finalKey) => stage.claim({ finalKey }));
      const { exclusive } = (await stage.store({ lanes: 1 })).kinds;
      await Promise.all(claims.map((claim) => exclusive.acquire(claim)));
      const inStandby = async (names: string): Promise<void> => {
        await stage.lab.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
        await stage.lab.query('SELECT pg_reload_conf()');
      };
      const isCommitting = async (like: string): Promise<boolean> => {
        const [row] = await stage.lab.query(
          `SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '${like}'`,
        );
        return Number(row!['n']) > 0;
      };
      // A commit that has to be flushed waits for a standby, too, and there is none.
      await inStandby('nowhere');
      let asked = 0;
      let isAsking = false;
      // The server reads the setting now and then.
      const seen = (): Promise<boolean> => {
        const claim = stage.claim({ finalKey: `${stage.key}-${asked}` });
        if (!isAsking) void exclusive.acquire(claim).finally(() => (isAsking = false));
        if (!isAsking) asked += 1;
        isAsking = true;
        return isCommitting('%');
      };
      await until(seen, { what: 'a commit waits for a standby' });
      let [isOver, isWaiting] = [false, false];
      const kept = Promise.all(claims.map((claim) => exclusive.release(claim, { keepForMs: 30_000 })));
      void kept.then(() => (isOver = true));
      await stage.lab.query(CANCEL_WAITS);
      const over = async (): Promise<boolean> => (isWaiting ||= await isCommitting('%m.lease%')) || isOver;
      await until(over, { what: 'the releases wait, or are over' });
      await inStandby('');
      await kept;
      assert.ok(isWaiting);
    },
  },
  {
    name: 'text of several claims is passed as the digits of its bytes',
    edits: {
      postgres: [
        { in: 'withWanted', find: 'nameTextOf(finalKey)', replace: 'Buffer.from(finalKey) as never' },
        NAMES_AS_DIGITS,
      ],
      mysql: [
        {
          in: 'rowsOfClaims',
          find: 'claims.map(({ finalKey, owner, leaseMs, tokens }, i) =>',
          replace:
            "claims.map(({ owner, leaseMs, tokens, ...its }, i, _, finalKey = `\\\\x${Buffer.from(its.finalKey).toString('hex')}`) =>",
        },
        {
          in: 'MysqlExclusive.transaction',
          find: 'nameOf(finalKey)',
          replace: "nameOf(`\\\\x${Buffer.from(finalKey).toString('hex')}`)",
        },
        NAMES_AS_DIGITS,
      ],
    },
    async play(stage) {
      const keys = oddKeys(stage);
      const replies = await Promise.all(together(await stage.store({ lanes: 1 }), stage, keys));
      assert.ok(replies.every(({ status }) => status === 'granted'));
      const { exclusive } = (await stage.store()).kinds;
      for (const finalKey of keys)
        assert.equal((await exclusive.acquire(stage.claim({ finalKey }))).status, 'taken', finalKey);
    },
  },
  {
    name: 'an error of a later statement of a message leaves what the earlier ones did',
    edits: {
      mysql: [
        { in: 'MysqlExclusive.transaction', find: 'START TRANSACTION; SELECT', replace: 'SELECT 1; SELECT' },
        { in: 'MysqlExclusive.transaction', find: '${COMMIT}', replace: 'SELECT 1' },
      ],
    },
    async play(stage) {
      const keys = two(stage);
      await rowsOf(stage, ...keys);
      const store = await stage.store({ lanes: 1 });
      // The grant needs no right to read an owner, the reply does.
      const columns = ['name', 'member', 'since', 'until', 'fence', 'queue', 'kind', 'bell'].join(', ');
      await stage.lab.query(`REVOKE ALL ON app.* FROM 'app'@'%';
GRANT SELECT (${columns}), INSERT, UPDATE, DELETE ON app.nest_lock TO 'app'@'%'`);
      const replies = await Promise.allSettled(together(store, stage, keys));
      await stage.lab.query(
        `REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'app'@'%'; GRANT ALL ON app.* TO 'app'@'%'`,
      );
      assert.deepEqual(
        replies.map((reply) => reply.status === 'fulfilled' && reply.value.status),
        ['granted', 'granted'],
      );
    },
  },
  {
    name: 'a token of a batch is not greater than that of an earlier holder whose clock was ahead',
    edits: {
      mysql: [
        {
          in: 'MysqlExclusive.takeFreeOnes',
          find: 'GREATEST(t.fence + 1, LAST_INSERT_ID())',
          replace: 'LAST_INSERT_ID()',
        },
      ],
      postgres: [
        {
          in: 'PostgresExclusive.takeFreeOnes',
          find: 'greatest(l.fence + 1, ${NOW})',
          replace: '(${NOW})',
        },
      ],
    },
    async play(stage) {
      const keys = two(stage);
      await rowsOf(stage, ...keys);
      await stage.lab.query('UPDATE nest_lock SET fence = fence + 3600000000');
      const before = await Promise.all(keys.map((key) => stage.column('fence', key)));
      const replies = await Promise.all(together(await stage.store({ lanes: 1 }), stage, keys));
      replies.forEach((reply, i) =>
        assert.ok(reply.status === 'granted' && reply.token! > Number(before[i])),
      );
    },
  },
];

/** Lets commits go on that wait for a standby. */
const CANCEL_WAITS = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
