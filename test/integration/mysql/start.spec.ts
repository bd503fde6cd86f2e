import { inspect } from 'node:util';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockConfigurationError, LockService, RedisLockModule } from 'nest-redis-lock';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { checkConnections } from '../../../lib/stores/mysql/mysql-checks.js';
import { MysqlDialect } from '../../../lib/stores/mysql/mysql-dialect.js';
import { migrationOf } from '../../../lib/stores/mysql/mysql-migration.js';
import { MysqlStore, type MysqlStoreOptions } from '../../../lib/stores/mysql/mysql.store.js';
import { until } from '../../support/async.js';
import { MysqlLab, newKey } from '../../support/mysql/mysql-lab.js';
import { MysqlServer } from '../../support/servers/mysql-server.js';
import { storeHost } from '../../support/stores/store-host.js';
import { refusedWith } from '../../support/refusal.js';

const RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const;
const commandTimeoutMs = 500;

let lab: MysqlLab;
beforeAll(async () => {
  lab = await MysqlLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/** Starts an app with a store, and resolves with it. */
const start = async (store: MysqlStore) => {
  @Module({ imports: [RedisLockModule.forRoot({ store, shutdownGraceMs: 0 })] })
  class App {}
  return NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
};

/** Resolves with the error that keeps an app from starting. */
const refusal = async (options: MysqlStoreOptions): Promise<LockConfigurationError> => {
  const error: unknown = await start(new MysqlStore(options)).then(
    (app) => app.close(),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret');
  return error as LockConfigurationError;
};

const uriOf = ({ user = 'app', password = 'secret', database = 'app' } = {}): string =>
  `mysql://${user}:${password}@${lab.server.host}:${lab.server.port}/${database}`;

/** A user with some of the rights on the table, and no other. */
const userWith = async (...rights: readonly string[]): Promise<string> => {
  const user = newKey('user');
  const grants = rights.map((right) => `GRANT ${right} ON app.nest_lock TO '${user}'@'%'`);
  await lab.query([`CREATE USER '${user}'@'%' IDENTIFIED BY 'secret'`, ...grants].join('; '));
  return uriOf({ user });
};

describe('an app on MySQL does not start', () => {
  afterEach(async () => {
    // Each refused start has closed its connections.
    await until(async () => (await lab.connections()).length === 0, { what: 'no connection is left' });
  });

  it.each<[string, MysqlStoreOptions, RegExp]>([
    ['lanes: 0', { uri: 'mysql://h/app', lanes: 0 }, /^lanes .*1 to 100/],
    ['lanes: 1.5', { uri: 'mysql://h/app', lanes: 1.5 }, /^lanes .*1 to 100/],
    ['lanes: 101', { uri: 'mysql://h/app', lanes: 101 }, /^lanes .*1 to 100/],
    ['an unknown option', { uri: 'mysql://h/app', lane: 2 } as MysqlStoreOptions, /lane\b.*lanes/],
    ['no address', {}, /Neither uri nor options/],
    ['an address without a scheme', { uri: 'app:secret@db/app' }, /^uri .*mysql:\/\//],
    ['an address of another database', { uri: 'postgres://app:secret@db/app' }, /^uri .*mysql:\/\//],
    ['an address with a bad port', { uri: 'mysql://app:secret@db:port/app' }, /^uri .*mysql:\/\//],
    ['a table with a quote in its name', { uri: 'mysql://h/app', table: 'a`b' }, /^table /],
  ])('with %s', (_, options, message) => {
    const error = refusedWith(LockConfigurationError)(() => new MysqlStore(options));
    expect(error.message).toMatch(message);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret');
  });

  it('without the table, and the error has the statement to run', async () => {
    const table = newKey('other');
    const { message } = await refusal({ uri: lab.server.uri, table });
    expect(message).toContain(`The database app has no table ${table}`);
    await lab.query(message.slice(message.indexOf('CREATE TABLE')));
    await (await start(lab.store({ table }))).close();
  });

  it('with a table of another version, and the error has the statements to run', async () => {
    const table = newKey('other');
    await lab.query(`CREATE TABLE ${table} (name INT) COMMENT 'nest-redis-lock 0'`);
    const { message } = await refusal({ uri: lab.server.uri, table });
    expect(message).toContain(`another version of the table ${table} ("nest-redis-lock 0")`);
    await lab.query(message.slice(message.indexOf('DROP TABLE')));
    await (await start(lab.store({ table }))).close();
  });

  it.each([undefined, 'on start'] as const)('without a database, with migrate: %s', async (migrate) => {
    expect((await refusal({ uri: uriOf({ database: '' }), migrate })).message).toMatch(
      /has no database.*host:3306\/app/,
    );
  });

  it('with a database that the server does not have', async () => {
    expect((await refusal({ uri: uriOf({ user: 'app', database: 'gone' }) })).message).toMatch(/'?gone'?/);
  });

  it('with a wrong password', async () => {
    const { message } = await refusal({ uri: uriOf({ password: 'wrong-secret' }) });
    expect(message).toMatch(/refuses the login.*Access denied for user 'app'/);
  });

  it('with a table that is not transactional', async () => {
    const table = 'not_transactional';
    await lab.query(migrationOf(table).replace('ENGINE=InnoDB', 'ENGINE=MyISAM'));
    expect((await refusal({ uri: lab.server.uri, table })).message).toContain(
      `ALTER TABLE \`${table}\` ENGINE = InnoDB`,
    );
  });

  it.each([
    ['without its primary key', 'DROP PRIMARY KEY', /PRIMARY|two owners get one key/],
    [
      'with a primary key of other columns',
      'DROP PRIMARY KEY, ADD PRIMARY KEY (name, owner)',
      /two owners get one key/,
    ],
    ['without a column', 'DROP COLUMN bell', /bell/],
    ['with a column that is too short', 'MODIFY owner VARBINARY(9) NOT NULL', /owner/],
    ['with a column of another type', 'MODIFY until INT NOT NULL', /until/],
    ['with names that are folded', 'MODIFY name VARCHAR(512) CHARACTER SET latin1', /two keys are one/],
    ['with a rule for its values', "ADD CHECK (kind <> 'permit')", /CONSTRAINT/],
  ])('%s, also with migrate: on start', async (_, change, reason) => {
    const table = newKey('changed');
    await lab.query(`${migrationOf(table)}; ALTER TABLE ${table} ${change}`);
    for (const migrate of [undefined, 'on start'] as const) {
      const { message } = await refusal({ uri: lab.server.uri, table, migrate });
      expect(message).toMatch(reason);
      expect(message).toContain(`run: DROP TABLE \`${table}\`; CREATE TABLE`);
    }
  });

  it('with a trigger that spoils what its statements reply', async () => {
    const table = newKey('triggered');
    await lab.query(`${migrationOf(table)};
CREATE TRIGGER ${table} BEFORE UPDATE ON ${table} FOR EACH ROW SET @seen = 1`);
    expect((await refusal({ uri: lab.server.uri, table })).message).toContain('must have no trigger');
  });

  it.each(RIGHTS)('without the right %s', async (missing) => {
    const uri = await userWith(...RIGHTS.filter((right) => right !== missing));
    expect((await refusal({ uri })).message).toMatch(
      new RegExp(`lacks rights. Run: GRANT ${missing} ON .app.\\..nest_lock. TO 'user_\\d+'@'%'`),
    );
  });

  it('without any right to the table', async () => {
    expect((await refusal({ uri: await userWith('USAGE') })).message).toMatch(
      /no right|lacks rights|refuses/,
    );
  });

  it.each([undefined, 'on start'] as const)('on a read-only server, with migrate: %s', async (migrate) => {
    await lab.query('SET GLOBAL read_only = 1');
    try {
      expect((await refusal({ uri: lab.server.uri, migrate })).message).toMatch(
        /is read-only.*address of the primary/,
      );
    } finally {
      await lab.query('SET GLOBAL read_only = 0');
    }
  });

  it('when connections share a session of the server, and the error says pooled: true', async () => {
    const settings = {
      connection: () => ({ uri: lab.server.uri }),
      table: 'nest_lock',
      runtime: systemRuntime(),
    };
    const dialect = new MysqlDialect({ ...settings, pooled: false, timeoutMs: commandTimeoutMs });
    const session = await dialect.connect();
    const shared = { name: 'MySQL', runtime: systemRuntime(), timeoutMs: commandTimeoutMs };
    await expect(checkConnections({ ...shared, connect: () => Promise.resolve(session) })).rejects.toThrow(
      /share a session.*pooled: true/,
    );
  });
});

describe('an app on MySQL starts', () => {
  it('while the server cannot be reached: the first lock says so, and locks work once it is there', async () => {
    await using server = await MysqlServer.start();
    await server.migrate();
    await server.kill('SIGKILL');
    const app = await start(lab.store({ uri: server.uri, commandTimeoutMs }));
    const locks = app.get<LockService>(LockService);
    const failure = { code: 'LOCK_STORE_FAILED', outcome: 'not-executed' };
    await expect(locks.acquire('order')).rejects.toMatchObject(failure);
    await expect(locks.acquire('order')).rejects.toThrow(/ECONNREFUSED/);
    await server.restart();
    await until(() => locks.withLock('order', () => true));
    await app.close();
  });

  it.each(['swallowReplies', 'blackhole'] as const)(
    'while connections hang (%s): locks fail in time, and work again later',
    async (fault) => {
      const proxy = await lab.proxy();
      // From the reply to the login on: then the driver waits without a limit.
      const stop = proxy.onData((connection, direction, chunk) => {
        if (direction === 'toServer' && chunk.includes('innodb_lock_wait_timeout')) connection[fault]();
      });
      const app = await start(lab.store({ uri: lab.uriThrough(proxy), commandTimeoutMs }));
      const locks = app.get<LockService>(LockService);
      await expect(locks.acquire('order')).rejects.toMatchObject({ outcome: 'not-executed' });
      stop();
      await until(() => locks.withLock('order', () => true), { timeoutMs: 5_000, what: 'locks work again' });
      await app.close();
    },
  );

  it('while others have locked the table: that is no fault of it', async () => {
    await lab.transaction('SELECT * FROM nest_lock FOR UPDATE');
    await lab.store().open(storeHost());
  });

  it("with migrate: 'on start', without the table", async () => {
    const table = newKey('new');
    const app = await start(lab.store({ table, migrate: 'on start' }));
    expect(await app.get<LockService>(LockService).withLock('order', () => 'ran')).toBe('ran');
    await app.close();
    expect(await lab.query(`SELECT COUNT(*) AS n FROM ${table}`)).toEqual([{ n: 1 }]);
  });
});

describe('store.migrate()', () => {
  it('may be called twice, by eight processes at once, and while a transaction reads the table', async () => {
    const table = newKey('new');
    const stores = Array.from({ length: 8 }, () => lab.store({ table }));
    await Promise.all(stores.map((store) => store.migrate()));
    await lab.query(`INSERT INTO ${table} (name) VALUES ('stays')`);
    const reader = await lab.server.adminConnection();
    try {
      await reader.query(`USE app; START TRANSACTION; SELECT * FROM ${table}`);
      await stores[0]!.migrate();
    } finally {
      reader.destroy();
    }
    expect(await lab.query(`SELECT COUNT(*) AS n FROM ${table}`)).toEqual([{ n: 1 }]);
  });
});

describe('the smallest user of MySQL', () => {
  it('may lock, wait, renew, extend, look, force, and ring bells', async () => {
    const uri = await userWith(...RIGHTS);
    const one = lab.open({ watchdogMs: 1_000 }, { uri, commandTimeoutMs });
    const two = lab.open({}, { uri, commandTimeoutMs });
    await Promise.all([one.manager.open(), two.manager.open()]);
    expect([...one.log, ...two.log]).toEqual([]);
    const wait = { waitMs: 10_000 };
    for (const acquire of [
      ({ locks }: typeof one, key: string) => locks.acquire(key, wait),
      ({ locks }: typeof one, key: string) => locks.permits(key, { permits: 1 }).acquire(wait),
    ]) {
      const key = newKey();
      const lease = await acquire(one, key);
      const waiting = acquire(two, key);
      await lab.waiting(key);
      await lease.extend(2_000);
      expect(await two.locks.inspect(key)).toMatchObject({ holders: [{ count: 1 }] });
      expect(await lease.release()).toBe('released');
      const held = await waiting;
      const next = acquire(one, key);
      await lab.waiting(key);
      await held.release();
      await next;
      expect(await two.locks.forceUnlock(key)).toBe(true);
    }
  });
});
