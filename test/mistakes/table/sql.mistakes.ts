import assert from 'node:assert/strict';
import type { SqlStage } from '../../faults/on-sql/sql-stage.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { WatchListener } from '../../../lib/core/seam/watch.js';
import type { Edit } from '../source/edit.js';

/** A deliberate mistake in the statements for one or more databases, which a real server shows. */
export interface SqlMistake {
  readonly name: string;
  /** The mistake itself, for each database whose statements can have it. */
  readonly edits: Readonly<Partial<Record<'mysql' | 'postgres', readonly Edit[]>>>;
  /** What the mistake makes fail, with an `AssertionError`. With the library as it is, nothing does. */
  play(stage: SqlStage): Promise<void>;
}

const LISTENER: WatchListener = { notified: () => undefined, failed: () => undefined };
const AN_HOUR_S = 3_600;

/** Runs `work` while new connections have a clock that stands still, set off by some seconds. */
const withClock = async ({ lab }: SqlStage, offsetS: number, work: () => Promise<void>): Promise<void> => {
  await lab.query(`SET GLOBAL init_connect = 'SET timestamp = ${Date.now() / 1_000 + offsetS}'`);
  try {
    await work();
  } finally {
    await lab.query(`SET GLOBAL init_connect = ''`);
  }
};

/** A process asks for a key that it has released, while another one waits for it. */
const asksAlways = (stage: SqlStage): Promise<void> =>
  withClock(stage, 0, async () => {
    const [one, other] = [await stage.store(), await stage.store()];
    const claim = stage.claim();
    await one.kinds.exclusive.acquire(claim);
    const watch = other.kinds.exclusive.watch(stage.claim(), LISTENER);
    await other.kinds.exclusive.acquire(stage.claim({ waits: true }));
    await one.kinds.exclusive.release(claim);
    const reply = await one.kinds.exclusive.acquire(stage.claim());
    watch.close();
    assert.equal(reply.status, 'taken');
  });

/** One mistake for each safety rule of the stores on a database. */
export const SQL_MISTAKES: readonly SqlMistake[] = [
  {
    name: 'leases end by the clock of the client',
    edits: {
      mysql: [
        {
          in: 'mysql-terms:NOW',
          find: 'raw("TIMESTAMPDIFF(MICROSECOND, \'1970-01-01\', UTC_TIMESTAMP(6))")',
          replace: 'raw(`${Date.now() * 1000}`)',
        },
      ],
    },
    async play(stage) {
      await withClock(stage, AN_HOUR_S, async () => {
        const store = await stage.store();
        await store.kinds.exclusive.acquire(stage.claim());
      });
      assert.ok(Number(await stage.column('until')) > (Date.now() + (AN_HOUR_S * 1_000) / 2) * 1_000);
    },
  },
  {
    name: 'a release ends at the time of the server, which may be set back',
    edits: {
      mysql: [{ in: 'mysql-terms:RELEASED', find: "IF(queue = '', 0, -${NOW})", replace: '(${NOW})' }],
    },
    async play(stage) {
      const [claim, next] = [stage.claim(), stage.claim()];
      const { exclusive } = (await stage.store()).kinds;
      await exclusive.acquire(claim);
      await exclusive.release(claim);
      await withClock(stage, -AN_HOUR_S, async () => {
        const later = await stage.store();
        assert.equal((await later.kinds.exclusive.acquire(next)).status, 'granted');
      });
    },
  },
  {
    name: 'a token is not greater than that of an earlier holder whose clock was ahead',
    edits: {
      mysql: [
        { in: 'MysqlExclusive.acquire', find: 'GREATEST(fence + 1, ${NOW})', replace: '${NOW}' },
        { in: 'MysqlExclusive.takeFree', find: 'GREATEST(fence + 1, ${NOW})', replace: '(${NOW})' },
      ],
      postgres: [
        { in: 'PostgresExclusive.acquire', find: 'greatest(l.fence + 1, now)', replace: 'now' },
        { in: 'PostgresExclusive.takeFree', find: 'greatest(fence + 1, ${NOW})', replace: '(${NOW})' },
      ],
    },
    async play(stage) {
      const { exclusive } = (await stage.store()).kinds;
      const claim = stage.claim();
      await exclusive.acquire(claim);
      await exclusive.release(claim);
      await stage.set('fence = fence + 3600000000');
      const before = Number(await stage.column('fence'));
      const reply = await exclusive.acquire(stage.claim());
      assert.ok(reply.status === 'granted' && reply.token! > before);
    },
  },
  {
    name: 'the owner is set before the grant has been decided',
    edits: {
      mysql: [
        {
          in: 'MysqlExclusive.acquire',
          find: 'since = IF(owner <> VALUES(owner) AND ${mayTake}, VALUES(since), since), owner = IF(${mayTake}, VALUES(owner), owner),',
          replace: `owner = IF(\${mayTake}, VALUES(owner), owner),
since = IF(owner <> VALUES(owner) AND \${mayTake}, VALUES(since), since),`,
        },
      ],
    },
    async play(stage) {
      const [one, other] = [await stage.store(), await stage.store()];
      const [claim, waits] = [stage.claim(), stage.claim({ waits: true })];
      await one.kinds.exclusive.acquire(claim);
      const watch = other.kinds.exclusive.watch(waits, LISTENER);
      await other.kinds.exclusive.acquire(waits);
      await one.kinds.exclusive.release(claim);
      await other.kinds.exclusive.acquire(waits);
      watch.close();
      assert.equal(await stage.column('queue'), '');
    },
  },
  {
    name: 'a release does not ask for its owner',
    edits: {
      mysql: [
        {
          in: 'MysqlExclusive.release',
          find: 'AND owner = ${bytes(owner)}',
          replace: "AND ${bytes(owner)} <> ''",
        },
      ],
      postgres: [
        {
          in: 'PostgresExclusive.release',
          find: 'AND owner = ${bytes(owner)}',
          replace: "AND ${bytes(owner)}::text <> ''",
        },
      ],
    },
    async play(stage) {
      const { exclusive } = (await stage.store()).kinds;
      await exclusive.acquire(stage.claim());
      assert.equal((await exclusive.release(stage.claim())).wasHeld, false);
    },
  },
  {
    name: 'a renewal revives a hold that is over',
    edits: {
      mysql: [
        {
          in: 'MysqlExclusive.extend',
          find: 'LAST_INSERT_ID() + v.l) WHERE t.until > ${NOW};',
          replace: 'LAST_INSERT_ID() + v.l);',
        },
      ],
      postgres: [
        { in: 'MINE', find: ' AND r.until > ${NOW}', replace: '' },
        { in: 'PostgresExclusive.extend', find: 'AND l.until > ${NOW} RETURNING', replace: 'RETURNING' },
      ],
    },
    async play(stage) {
      const { exclusive } = (await stage.store()).kinds;
      const claim = stage.claim();
      await exclusive.acquire(claim);
      await stage.set('until = 1');
      assert.deepEqual(await exclusive.extendMany([claim]), [{ status: 'lost' }]);
    },
  },
  {
    name: 'names are compared under a collation',
    edits: {
      mysql: [
        {
          in: 'mysql-migration:migrationOf',
          find: 'name VARBINARY(512) NOT NULL',
          replace: 'name VARCHAR(512) NOT NULL',
        },
      ],
    },
    async play(stage) {
      try {
        const { exclusive } = (await stage.store({ table: 'other', migrate: 'on start' })).kinds;
        await exclusive.acquire(stage.claim());
        const other = await exclusive.acquire(stage.claim({ finalKey: stage.key.toUpperCase() }));
        assert.equal(other.status, 'granted');
      } finally {
        await stage.lab.query('DROP TABLE other');
      }
    },
  },
  {
    name: 'a key that others wait for is taken for a free one',
    edits: {
      mysql: [
        {
          in: 'MysqlExclusive.takeFree',
          find: "AND until <= ${NOW} AND queue = ''",
          replace: 'AND until <= ${NOW}',
        },
      ],
      postgres: [
        {
          in: 'PostgresExclusive.takeFree',
          find: "AND until <= ${NOW} AND queue = ''",
          replace: 'AND until <= ${NOW}',
        },
      ],
    },
    async play(stage) {
      const [one, other] = [await stage.store(), await stage.store()];
      await one.kinds.exclusive.acquire(stage.claim());
      const watch = other.kinds.exclusive.watch(stage.claim(), LISTENER);
      await other.kinds.exclusive.acquire(stage.claim({ waits: true }));
      await stage.set('until = 1');
      await one.kinds.exclusive.acquire(stage.claim());
      // The process that missed its turn has lost its place.
      assert.equal(await stage.column('queue'), '');
      watch.close();
    },
  },
  {
    name: 'a key that is held is taken for a free one',
    edits: {
      mysql: [
        {
          in: 'MysqlExclusive.takeFree',
          find: "AND until <= ${NOW} AND queue = ''",
          replace: "AND queue = ''",
        },
      ],
      postgres: [
        {
          in: 'PostgresExclusive.takeFree',
          find: "AND until <= ${NOW} AND queue = ''",
          replace: "AND queue = ''",
        },
      ],
    },
    async play(stage) {
      const { exclusive } = (await stage.store()).kinds;
      await exclusive.acquire(stage.claim());
      assert.equal((await exclusive.acquire(stage.claim())).status, 'taken');
    },
  },
  {
    name: 'a process that asks always goes before the wait queue',
    edits: {
      mysql: [
        {
          in: 'MysqlExclusive.isFree',
          find: 'AND (${this.rank()} = 0 OR ${NOW} - ABS(until) NOT BETWEEN -${BEFORE} AND ${this.turnsBefore()} - 1)`;',
          replace: '`;',
        },
      ],
    },
    play: asksAlways,
  },
  {
    name: 'the heir takes the key while the first has its turn',
    edits: {
      mysql: [
        {
          in: 'MysqlExclusive.turnsBefore',
          find: 'LEAST(${this.rank()}, 2)`;',
          replace: '(LEAST(${this.rank()}, 2) DIV 2)`;',
        },
      ],
    },
    play: asksAlways,
  },
  {
    name: 'a caller that gave up stays in the wait queue',
    edits: {
      mysql: [{ in: 'Places.requested', find: 'this.runtime.soon(() => this.leave(place));', replace: ';' }],
      postgres: [
        { in: 'Places.requested', find: 'this.runtime.soon(() => this.leave(place));', replace: ';' },
      ],
    },
    async play(stage) {
      const [one, other] = [await stage.store(), await stage.store()];
      await one.kinds.exclusive.acquire(stage.claim());
      await other.kinds.exclusive.acquire(stage.claim({ waits: true }));
      await stage.settled(other);
      assert.equal(await stage.column('queue'), '');
    },
  },
  {
    name: 'a permit whose lease is over at once is taken for one without a number',
    edits: {
      mysql: [{ in: 'MysqlPermit.acquire', find: 'if (!live && of !== undefined)', replace: 'if (false)' }],
      postgres: [
        { in: 'PostgresPermit.acquire', find: 'if (!live && of !== undefined)', replace: 'if (false)' },
      ],
    },
    async play(stage) {
      const { permit } = (await stage.store()).kinds;
      const acquiring = permit.acquire({ ...stage.permitClaim(1), leaseMs: 0.001 });
      assert.equal(await acquiring.then(({ status }) => status, String), 'taken');
    },
  },
  {
    name: 'a renewal waits for a row that others have locked, and delays the rest',
    edits: {
      mysql: [{ in: 'MysqlExclusive.extend', find: 'FOR UPDATE SKIP LOCKED', replace: '' }],
      postgres: [
        {
          in: 'lockedRow',
          find: ' FOR UPDATE SKIP LOCKED',
          replace: ' FOR UPDATE',
        },
      ],
    },
    async play(stage) {
      const { exclusive } = (await stage.store({ lanes: 1 })).kinds;
      const [locked, free] = [stage.claim(), stage.claim({ finalKey: `${stage.key}-free` })];
      await exclusive.acquire(locked);
      await exclusive.acquire(free);
      const before = await stage.column('until', free.finalKey);
      const foreign = await stage.lockedRows();
      const extending = exclusive.extendMany([locked, free]);
      assert.equal(await stage.blockedDuring(extending), false);
      const after = await stage.column('until', free.finalKey);
      await foreign[Symbol.asyncDispose]();
      assert.ok(Number(after) > Number(before));
    },
  },
  {
    name: 'an undo does not end the session of the request',
    edits: {
      mysql: [
        { in: 'MysqlDialect.settle', find: 'if (connection === null) return true;', replace: 'return true;' },
        // Otherwise the request may end by itself before the test has looked.
        {
          in: 'mysql-settings:SESSION_SETTINGS',
          find: "name: 'innodb_lock_wait_timeout', value: '1'",
          replace: "name: 'innodb_lock_wait_timeout', value: '30'",
        },
      ],
    },
    async play(stage) {
      const { exclusive } = (await stage.store({ commandTimeoutMs: 300, lanes: 1 })).kinds;
      const claim = stage.claim();
      await exclusive.acquire(claim);
      await exclusive.release(claim);
      const foreign = await stage.lockedRows();
      const next = stage.claim();
      const acquiring = exclusive.acquire(next).then(
        () => assert.fail('granted'),
        (failure: unknown) => failure as StoreFailure,
      );
      await stage.blocked(1);
      const [request] = await stage.lab.acquires();
      const uncertain = await acquiring;
      await exclusive.release(next, { uncertain }).catch(() => undefined);
      const left = await stage.lab.connections();
      await foreign[Symbol.asyncDispose]();
      assert.ok(!left.includes(request!));
    },
  },
  {
    name: 'a permit does not see an exclusive lock',
    edits: {
      mysql: [
        {
          in: 'MysqlPermit.acquire',
          find: "kind = IF(until <= ${NOW}, 'permit', kind)",
          replace: "kind = 'permit'",
        },
      ],
      postgres: [
        {
          in: 'PostgresPermit.acquire',
          find: "(h.kind = 'permit' AND h.until > n.now OR ${revives})",
          replace: '(h.until > n.now OR ${revives})',
        },
      ],
    },
    async play(stage) {
      const { kinds } = await stage.store();
      await kinds.permit.acquire(stage.permitClaim(3));
      await stage.set('until = 1');
      await kinds.exclusive.acquire(stage.claim());
      assert.equal((await kinds.permit.acquire(stage.permitClaim(3))).status, 'taken');
    },
  },
  {
    name: 'a poll trusts a server that has become read-only',
    edits: {
      mysql: [
        {
          in: 'peeked',
          find: 'if (rows.every(({ readOnly }) => readOnly === 0)) return rows;',
          replace: 'if (rows) return rows;',
        },
      ],
    },
    async play(stage) {
      const { exclusive } = (await stage.store()).kinds;
      const claim = stage.claim();
      await exclusive.acquire(claim);
      await stage.lab.query('SET GLOBAL read_only = 1');
      const polled = await exclusive.peekMany([claim]).catch(() => 'refused');
      await stage.lab.query('SET GLOBAL read_only = 0');
      assert.equal(polled, 'refused');
    },
  },
  {
    name: 'the clock is that of the start of the statement, before it waited for the row',
    edits: {
      postgres: [
        {
          in: 'postgres-terms:NOW',
          find: "raw('(extract(epoch FROM clock_timestamp()) * 1000000)::bigint')",
          replace: "raw('(extract(epoch FROM now()) * 1000000)::bigint')",
        },
      ],
    },
    async play(stage) {
      const [one, other] = [await stage.store(), await stage.store()];
      await one.kinds.exclusive.acquire(stage.claim());
      const foreign = await stage.lockedRows();
      const acquiring = other.kinds.exclusive.acquire(stage.claim({ waits: true }));
      await stage.blocked(1);
      await foreign.query(
        `UPDATE nest_lock SET until = extract(epoch FROM clock_timestamp()) * 1000000; COMMIT`,
      );
      assert.equal((await acquiring).status, 'granted');
    },
  },
];
