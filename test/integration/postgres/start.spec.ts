import { connect, createServer, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import { PostgresStore, type PostgresStoreOptions } from '../../../lib/stores/postgres/postgres.store.js';
import { migrationOf } from '../../../lib/stores/postgres/postgres-migration.js';
import { newKey, PostgresLab } from '../../support/postgres/postgres-lab.js';
import { listenOnFreePort, LOOPBACK } from '../../support/loopback.js';
import { refusedWith } from '../../support/refusal.js';
import { storeHost } from '../../support/stores/store-host.js';

const RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const;

let lab: PostgresLab;
beforeAll(async () => {
  lab = await PostgresLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/** Resolves with the error that keeps an app from starting. */
const refusal = async (options: PostgresStoreOptions): Promise<string> => {
  const error: unknown = await lab
    .store(options)
    .open(storeHost())
    .then(undefined, (thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret');
  return (error as Error).message;
};

/** A role with some of the rights on the table, and no other. */
const roleWith = async (...rights: readonly string[]): Promise<string> => {
  const role = newKey('role');
  const grants = rights.map((right) => `GRANT ${right} ON nest_lock TO ${role}`);
  await lab.query([`CREATE USER ${role} PASSWORD 'secret'`, ...grants].join('; '));
  return lab.server.uriOf(role, 'secret');
};

const POOLED = /pooler.*pooled: true.*listenUrl/;

const uriOf = (port: number): string => `postgres://app:secret@${LOOPBACK}:${port}/app`;

/** Listens as something between app and server, until the test ends. */
const pooler = async (serve: (socket: Socket) => void): Promise<number> => {
  const server = createServer((socket) => serve(socket.on('error', () => undefined)));
  const port = await listenOnFreePort(server);
  lab.track({ [Symbol.asyncDispose]: async () => void server.close() });
  return port;
};

describe('PostgresStore refuses', () => {
  it.each<[string, PostgresStoreOptions, RegExp]>([
    ['lanes: 0', { settings: {}, lanes: 0 }, /^lanes .*1 to 100/],
    ['lanes: 1.5', { settings: {}, lanes: 1.5 }, /^lanes .*1 to 100/],
    ['an unknown option', { settings: {}, lane: 2 } as PostgresStoreOptions, /lane\b.*lanes/],
    ['no address', {}, /Neither connectionString nor settings/],
    [
      'an address without a scheme',
      { connectionString: 'app:secret@db/app' },
      /^connectionString .*postgres:/,
    ],
    [
      'an address of another database',
      { connectionString: 'mysql://app:secret@db/app' },
      /^connectionString /,
    ],
    [
      'an address with a bad port',
      { connectionString: 'postgres://app:secret@db:port/app' },
      /^connectionString /,
    ],
    ['a bad listenUrl', { settings: {}, listenUrl: 'postgres://app:secret@db:port/app' }, /^listenUrl /],
    ['a table with a quote in its name', { settings: {}, table: 'a"b' }, /^table /],
    ['a schema with a dot in its name', { settings: {}, schema: 'a.b' }, /^schema /],
    ['settings that are no object', { settings: 'x' } as unknown as PostgresStoreOptions, /^settings /],
    ['pooled: 1', { settings: {}, pooled: 1 } as unknown as PostgresStoreOptions, /^pooled /],
    ['migrate: true', { settings: {}, migrate: true } as unknown as PostgresStoreOptions, /^migrate /],
  ])('%s', (_, options, message) => {
    const error = refusedWith(LockConfigurationError)(() => new PostgresStore(options));
    expect(error.message).toMatch(message);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret');
  });
});

describe('PostgresStore does not open', () => {
  it('without its table, and the error has the statements to run', async () => {
    const table = newKey('other');
    const message = await refusal({ table });
    expect(message).toContain(`The database app has no table "${table}"`);
    await lab.query(`SET ROLE app; ${message.slice(message.indexOf('CREATE TABLE'))}; RESET ROLE`);
    await lab.store({ table }).open(storeHost());
  });

  it('with a table that a crash would empty', async () => {
    const table = 'unlogged';
    await lab.query(migrationOf(table).replace('CREATE TABLE', 'CREATE UNLOGGED TABLE'));
    expect(await refusal({ table })).toContain('a crash would empty it');
  });

  it.each([
    [
      'a partitioned table',
      (table: string) => migrationOf(table).replace(/\) WITH \([^)]*\);/, ') PARTITION BY HASH (name);'),
    ],
    [
      'a table that another one inherits',
      (table: string) => `${migrationOf(table)}; CREATE TABLE ${table}_more () INHERITS (${table})`,
    ],
  ])('with %s: two of its rows have one place', async (_, statements) => {
    const table = newKey('parts');
    await lab.query(statements(table));
    expect(await refusal({ table })).toContain('partitioned');
  });

  it('with a table in two schemas of the search path: two apps could use different ones', async () => {
    const table = newKey('twice');
    const make = migrationOf(table);
    await lab.query(`${make}; CREATE SCHEMA other; ${migrationOf(table, 'other')}`);
    await lab.query(
      `GRANT USAGE ON SCHEMA other TO app; ALTER TABLE ${table} OWNER TO app; ALTER TABLE other.${table} OWNER TO app`,
    );
    await lab.query('ALTER ROLE app SET search_path = other, public');
    try {
      expect(await refusal({ table })).toMatch(/other, public|public, other/);
      await lab.store({ table, schema: 'public' }).open(storeHost());
    } finally {
      await lab.query('ALTER ROLE app RESET search_path');
    }
  });

  it('with a table of another version', async () => {
    const table = newKey('other');
    await lab.query(`CREATE TABLE ${table} (name int); COMMENT ON TABLE ${table} IS 'nest-redis-lock 0'`);
    expect(await refusal({ table })).toContain(
      `another version of the table "${table}" ("nest-redis-lock 0")`,
    );
    const { 1: statements } = /run: (.*)$/s.exec(await refusal({ table }))!;
    await lab.query(`ALTER TABLE ${table} OWNER TO app; SET ROLE app; ${statements}; RESET ROLE`);
    await lab.store({ table }).open(storeHost());
  });

  it.each([
    ['without its primary key', 'DROP CONSTRAINT NAME_pkey', /ON CONFLICT/],
    ['with a primary key of other columns', 'DROP CONSTRAINT NAME_pkey, ADD UNIQUE (name)', /ON CONFLICT/],
    ['without a column', 'DROP COLUMN permits', /permits.* does not exist/],
    ['with a column that is too short', 'ALTER owner TYPE varchar(9)', /too long/],
    ['with a column of another type', 'ALTER until TYPE text', /bigint|text/],
    ['with names that are folded', 'ALTER name TYPE text COLLATE folded', /two keys are one/],
    ['with a trigger that refuses rows', 'ENABLE ALWAYS TRIGGER refusing', /not these rows/],
    ['with a rule for its values', "ADD CHECK (kind <> 'permit')", /violates check constraint/],
  ])('%s, also with migrate: on start', async (_, change, reason) => {
    const table = newKey('changed');
    await lab.query(`${migrationOf(table)}; ALTER TABLE ${table} OWNER TO app;
CREATE COLLATION IF NOT EXISTS folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not these rows'; END $$;
CREATE TRIGGER refusing BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse(); ALTER TABLE ${table} DISABLE TRIGGER refusing;
ALTER TABLE ${table} ${change.replace('NAME', table)}`);
    for (const migrate of [undefined, 'on start'] as const) {
      const message = await refusal({ table, migrate });
      expect(message).toMatch(reason);
      expect(message).toContain(`run: DROP TABLE "${table}"; CREATE TABLE`);
    }
  });

  it('with row level security that keeps rows from its role, and the error has the statements to run', async () => {
    const connectionString = await roleWith(...RIGHTS);
    await lab.query('ALTER TABLE nest_lock ENABLE ROW LEVEL SECURITY');
    try {
      const message = await refusal({ connectionString });
      expect(message).toContain('ALTER TABLE "nest_lock" DISABLE ROW LEVEL SECURITY');
      await lab.query(/CREATE POLICY.*\)(?=\.)/.exec(message)![0]);
      await lab.store({ connectionString }).open(storeHost());
      await lab.query("CREATE POLICY other ON nest_lock AS RESTRICTIVE USING (name <> 'x')");
      expect(await refusal({ connectionString })).toContain('Row level security');
    } finally {
      await lab.query(
        'DROP POLICY IF EXISTS locks ON nest_lock; DROP POLICY IF EXISTS other ON nest_lock; ALTER TABLE nest_lock DISABLE ROW LEVEL SECURITY',
      );
    }
  });

  it('with a table in a schema that the role may not use, and the error has the statement to run', async () => {
    const [table, schema, connectionString] = [newKey('hidden'), newKey('schema'), await roleWith()];
    await lab.query(`CREATE SCHEMA ${schema}; ${migrationOf(table, schema)}`);
    const message = await refusal({ table, connectionString });
    expect(message).toContain(`GRANT USAGE ON SCHEMA "${schema}" TO "role_`);
    expect(message).toContain('CREATE TABLE');
  });

  it.each<[string, PostgresStoreOptions, RegExp]>([
    ['a schema that is not there', { schema: 'gone' }, /run: CREATE SCHEMA "gone"/],
    ['no schema', { settings: { options: '-c search_path=gone' } }, /run: CREATE SCHEMA .*option schema/],
    ['a parameter that the server does not know', { settings: { options: '-c gone=1' } }, /gone/],
  ])("with migrate: 'on start' and %s", async (_, options, message) => {
    expect(await refusal({ ...options, migrate: 'on start' })).toMatch(message);
  });

  it.each(RIGHTS)('without the right %s', async (missing) => {
    const connectionString = await roleWith(...RIGHTS.filter((right) => right !== missing));
    expect(await refusal({ connectionString })).toContain(
      `lacks rights. Run: GRANT ${missing} ON "nest_lock" TO`,
    );
  });

  it('without the right to the schema', async () => {
    const [connectionString, schema] = [await roleWith(), newKey('schema')];
    await lab.query(`CREATE SCHEMA ${schema}`);
    expect(await refusal({ connectionString, schema })).toContain(`GRANT USAGE ON SCHEMA "${schema}"`);
  });

  it.each([
    ['a wrong password', 'app', 'wrong-secret', 'app', /password authentication failed/],
    ['a role that the server does not have', 'gone', 'secret', 'app', /password authentication failed/],
    ['a database that the server does not have', 'app', 'secret', 'gone', /"gone" does not exist/],
  ])('with %s', async (_what, role, password, database, reason) => {
    const { host, port } = lab.server;
    const connectionString = `postgres://${role}:${password}@${host}:${port}/${database}`;
    for (const pooled of [false, true])
      for (const migrate of [undefined, 'on start'] as const) {
        const message = await refusal({ connectionString, pooled, migrate });
        expect(message).toMatch(/refuses the login of PostgresStore/);
        expect(message).toMatch(reason);
      }
  });

  it("with migrate: 'on start' and a role that may not create the table, with the statement", async () => {
    const [connectionString, schema] = [await roleWith(), newKey('schema')];
    await lab.query(`CREATE SCHEMA ${schema}; GRANT USAGE ON SCHEMA ${schema} TO PUBLIC`);
    expect(await refusal({ connectionString, schema, migrate: 'on start' })).toMatch(
      /may not create the table .*As another role, run: CREATE TABLE/,
    );
  });

  it.each([undefined, 'on start'] as const)('on a read-only server, with migrate: %s', async (migrate) => {
    const table = migrate && newKey('new');
    await lab.query("ALTER ROLE app SET default_transaction_read_only = 'on'");
    try {
      expect(await refusal({ migrate, table })).toMatch(/is read-only.*address of the primary/);
    } finally {
      await lab.query('ALTER ROLE app RESET default_transaction_read_only');
    }
  });

  it('behind a pooler that refuses start-up parameters, and the error says pooled: true', async () => {
    const error = 'SFATAL\0C08P01\0Munsupported startup parameter: statement_timeout\0\0';
    const length = Buffer.alloc(4);
    length.writeInt32BE(error.length + 4);
    const port = await pooler((socket) => {
      socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), length, Buffer.from(error)])));
    });
    for (const migrate of [undefined, 'on start'] as const)
      expect(await refusal({ connectionString: uriOf(port), migrate })).toMatch(POOLED);
  });

  it('behind a pooler that accepts them: its connections have no process in the server', async () => {
    const port = await pooler((socket) => {
      const server = connect(lab.server.port, lab.server.host);
      server.on('data', (chunk) => {
        // The message with the number of the process.
        const at = chunk.indexOf('K\0\0\0\x0c', 0, 'latin1');
        if (at >= 0) chunk.writeInt32BE(chunk.readInt32BE(at + 5) + 1, at + 5);
        socket.write(chunk);
      });
      socket.on('data', (chunk) => void server.write(chunk));
      socket.on('close', () => server.destroy());
    });
    for (const migrate of [undefined, 'on start'] as const)
      expect(await refusal({ connectionString: uriOf(port), migrate })).toMatch(POOLED);
    await lab.store({ connectionString: uriOf(port), pooled: true }).open(storeHost());
  });
});

describe('PostgresStore opens', () => {
  it("with migrate: 'on start', without the table", async () => {
    const table = newKey('new');
    await lab.store({ table, migrate: 'on start' }).open(storeHost());
    expect(await lab.query(`SELECT count(*) FROM ${table}`)).toEqual([{ count: '0' }]);
  });

  it("with migrate: 'on start', also after a first request whose migration has failed", async () => {
    const { locks } = lab.open({}, { table: newKey('new'), migrate: 'on start' });
    await lab.query("ALTER ROLE app SET default_transaction_read_only = 'on'");
    try {
      await expect(locks.ping()).rejects.toThrow(/is read-only.*address of the primary/);
    } finally {
      await lab.query('ALTER ROLE app RESET default_transaction_read_only');
    }
    expect(await locks.withLock('key', () => 'ran')).toBe('ran');
  });

  it('its table by eight processes at once, in a schema of its own', async () => {
    const [table, schema] = [newKey('new'), newKey('schema')];
    await lab.query(`CREATE SCHEMA ${schema} AUTHORIZATION app`);
    const stores = Array.from({ length: 8 }, () => lab.store({ table, schema }));
    await Promise.all(stores.map((store) => store.migrate()));
    await stores[0]!.open(storeHost());
  });

  it('with the settings of the driver, whatever else they say', async () => {
    const { host, port } = lab.server;
    const settings = { host, port, user: 'app', password: 'secret', database: 'app' };
    const odd = { query_timeout: 1, types: { getTypeParser: () => () => 'nothing' }, pipeline: true };
    const store = lab.store({ connectionString: undefined, settings: { ...settings, ...odd } });
    await store.open(storeHost());
  });
});

describe('the smallest role of PostgreSQL', () => {
  it('may lock, wait, extend, look, force, notify, and end its own connections', async () => {
    const connectionString = await roleWith(...RIGHTS);
    const [one, two] = [lab.open({}, { connectionString }), lab.open({}, { connectionString })];
    await Promise.all([one.manager.open(), two.manager.open()]);
    for (const kind of ['exclusive', 'permit']) {
      const key = newKey();
      const acquire = ({ locks }: typeof one) =>
        kind === 'permit'
          ? locks.permits(key, { permits: 1 }).acquire({ waitMs: 10_000 })
          : locks.acquire(key, { waitMs: 10_000 });
      const lease = await acquire(one);
      const waiting = acquire(two);
      await lab.waiting(key);
      await lease.extend(2_000);
      expect(await two.locks.inspect(key)).toMatchObject({ holders: [{ count: 1 }] });
      expect(await lease.release()).toBe('released');
      await waiting;
      expect(await one.locks.forceUnlock(key)).toBe(true);
    }
    expect([...one.log, ...two.log].filter((line) => /hears no/.test(line))).toEqual([]);
  });
});
