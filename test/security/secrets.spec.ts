import { inspect } from 'node:util';
import { Redis, type RedisOptions } from 'ioredis';
import type { RedisSource } from 'nest-redis-lock/redis';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { resolveOptions } from '../../lib/nest/module/redis-lock.options.js';
import { hashSlot, tagOfSlot } from '../../lib/stores/redis/hash-slot.js';
import { MysqlStore } from '../../lib/stores/mysql/mysql.store.js';
import { PostgresStore } from '../../lib/stores/postgres/postgres.store.js';
import { useLab } from '../support/redis/lab.js';
import { openLocks, type OpenLocks } from '../support/redis/open-locks.js';
import { FakeRedis } from './support/fake-redis.js';
import { expectHidden } from './support/hidden.js';

/*
 * Errors are printed, sent to trackers and shown to people who may not know the password. Nothing of it is in any error,
 * event or log line, nor in what is printed of the objects that know it.
 */
/** Has all that has a meaning in a URL. Every part of it would give it away. */
const PARTS = ['Kx7', 'Wq9', 'Zt4', 'Yp2'];
const PASSWORD = `${PARTS[0]}/ü:${PARTS[1]}@#${PARTS[2]}?%${PARTS[3]}`;
const GONE = 'OnceItWasRight/@#';
const COMMAND_TIMEOUT_MS = 400;

const lab = useLab({
  users: [`app on >${PASSWORD} ~* &* +@all`, `few on >${PASSWORD} ~* &* +@all -evalsha -eval -select`],
});

const userOf = (username: string, more: RedisOptions = {}): RedisOptions => ({
  host: lab.server.host,
  port: lab.server.port,
  username,
  password: PASSWORD,
  ...more,
});

const open = (redis: RedisSource): OpenLocks => lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS }, redis);

const SECRET = new RegExp([...PARTS, 'OnceItWasRight'].join('|'));

const expectNoSecret = (value: unknown, what: string): void => expectHidden(value, SECRET, what);

/** JSON of an error, as a tracker makes it. */
const asJson = (error: unknown): string =>
  JSON.stringify(error, (_key, value: unknown) =>
    value instanceof Error
      ? { ...value, message: value.message, stack: value.stack, cause: value.cause }
      : value,
  );

const thrownBy = async (request: () => unknown): Promise<Error> => {
  try {
    await request();
  } catch (error) {
    expectNoSecret(error, 'the error');
    expectNoSecret(asJson(error), 'its JSON');
    return error as Error;
  }
  return expect.fail('it did not fail');
};

/** The failure of a caller that requests a lock. No log line or event on the way has the secret either. */
const lockFailure = async (
  opened: OpenLocks,
  request = () => opened.locks.acquire('order'),
): Promise<Error> => {
  const error = await thrownBy(request);
  expectNoSecret(opened.log, 'the log');
  for (const event of opened.events('store-down')) expectNoSecret(event, 'the event');
  expect(error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
  expect(error.cause).toBeInstanceOf(Error);
  return error;
};

const encoded = encodeURIComponent(PASSWORD);

describe('no part of the password is in the error', () => {
  it('of a wrong password', async () => {
    const wrong = `${PASSWORD}-wrong`;
    for (const redis of [
      userOf('app', { password: wrong }),
      `redis://app:${encodeURIComponent(wrong)}@${lab.server.host}:${lab.server.port}`,
      (_role: string, settings: RedisOptions) =>
        new Redis({ ...userOf('app', { password: wrong }), ...settings }),
    ]) {
      const error = await lockFailure(open(redis));
      expect(String(error.cause)).toMatch(/WRONGPASS/);
      expect(error.cause).toMatchObject({ name: 'ReplyError', command: { name: 'auth' } });
      expect((error.cause as Error).stack).toContain('WRONGPASS');
      expect(inspect(error.cause)).not.toContain('args');
    }
  });

  it('of a password that was right once', async () => {
    await lab.admin.call('ACL', 'SETUSER', 'rotated', 'on', `>${GONE}`, '~*', '&*', '+@all');
    let password = GONE;
    const opened = open((_role, settings) => {
      const client = new Redis({ ...userOf('rotated', { password }), ...settings });
      client.on('connecting', () => (client.options.password = password));
      return client;
    });
    await opened.locks.withLock('order', () => undefined);
    await lab.admin.call('ACL', 'SETUSER', 'rotated', 'resetpass', `>${PASSWORD}`);
    await lab.admin.call('CLIENT', 'KILL', 'USER', 'rotated');
    await until(() => opened.locks.ping().then(() => false, (error: Error) => String(error.cause).includes('WRONGPASS'))); // prettier-ignore
    // Another one is tried meanwhile: what was refused is neither of the two that are known.
    password = 'another';
    await lockFailure(opened);
  });

  it.each([
    ['a URL', () => `redis://app:${encoded}@127.0.0.1:1`],
    ['a URL with a name that has two addresses', () => `redis://app:${encoded}@localhost:1`],
    ['options', () => userOf('app', { port: 1 })],
    ['a client', () => new Redis({ ...userOf('app', { port: 1 }), lazyConnect: true })],
  ])('of a connection that is refused, by %s', async (_what, redis) => {
    const error = await lockFailure(open(redis()));
    expect(String(error.cause)).toMatch(/ECONNREFUSED/);
    expect(error.cause).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('of a missing permission, of a database that is refused, of a channel that is refused', async () => {
    await lockFailure(open(userOf('few')));
    await lockFailure(open(userOf('few', { db: 3 })));
    await lab.admin.call('ACL', 'SETUSER', 'deaf', 'on', `>${PASSWORD}`, '~*', '+@all', '-subscribe');
    const [holder, waiter] = [open(userOf('app')), open(userOf('deaf'))];
    await holder.locks.acquire('order');
    const error = await lockFailure(waiter, () => waiter.locks.acquire('order', { waitMs: 20_000 }));
    expect(error.message).toContain('SUBSCRIBE');
  });

  it('of foreign values in the places of a hold and of a fencing token', async () => {
    const opened = open(userOf('app'));
    await lab.admin.set('lock:order', 'x');
    await lockFailure(opened);
    await lockFailure(opened, () => opened.locks.inspect('order') as Promise<never>);
    await lab.admin.del('lock:order');
    await lab.admin.set(`nest_redis_lock:fence:{${tagOfSlot(hashSlot('lock:order'))}}`, 'x');
    await lockFailure(opened);
  });

  it('of what is not answered: a command, a greeting, a connection that is cut', async () => {
    const proxy = await lab.proxy();
    const opened = open(userOf('app', { port: proxy.port }));
    await opened.locks.ping();
    proxy.find('ping')[0]!.swallowReplies();
    await lockFailure(opened);
    proxy.blackhole();
    proxy.cut();
    await lockFailure(opened);
    await proxy.restore();
    await until(() => opened.locks.ping().then(() => true));
    const stop = proxy.onData((connection, _direction, chunk) => {
      if (chunk.toString().includes('evalsha')) connection.cut();
    });
    await lockFailure(opened);
    stop();
  });

  it('that a server repeats: of an AUTH that it does not know, or of its own accord', async () => {
    await using fake = await FakeRedis.start();
    const redis = fake.url.replace('//', `//app:${encoded}@`);
    fake.reply(
      'auth',
      `-ERR unknown command \`auth\`, with args beginning with: \`app\`, \`${PASSWORD.slice(0, 9)}\r\n`,
    );
    await lockFailure(open(redis));
    for (const form of [PASSWORD, encoded, encodeURI(PASSWORD)]) {
      fake.reply('auth', `-ERR no, not ${form} again\r\n`);
      await lockFailure(open(redis));
      fake.reply('auth', undefined);
      fake.reply('acquire', `-ERR said the user of redis://app:${form}@here\r\n`);
      await lockFailure(open(redis));
      fake.reply('acquire', `-WRONGTYPE of ${form}\r\n`);
      await lockFailure(open(redis));
      fake.reply('acquire', undefined);
    }
  });
});

describe('no part of the password is in the refusal', () => {
  const refused = async (redis: unknown): Promise<Error> => {
    const error = await thrownBy(() => openLocks(redis as RedisSource));
    expect(error).toMatchObject({ code: 'LOCK_CONFIGURATION' });
    expect(error.message).toMatch(/^redis/);
    return error;
  };

  it.each([
    `redis://app:${PASSWORD}@127.0.0.1:6379/0`,
    `redis://:${PASSWORD}@127.0.0.1`,
    `redis://app:Kx7/Wq9@127.0.0.1`,
    `redis://app:12/Wq9@127.0.0.1`,
    `redis://app:Kx7#Wq9@127.0.0.1`,
    `redis://app:Kx7?Wq9@127.0.0.1`,
    `redis://app:Kx7%zzWq9@127.0.0.1`,
    `redis://app:${encoded}@127.0.0.1:none`,
    `redis://app:${encoded}@127.0.0.1:99999`,
    `redis://app:${encoded}@127.0.0.1/orders`,
    `redis://app:${encoded}@[::`,
    `http://app:${encoded}@127.0.0.1`,
    ` redis://app:${encoded}@127.0.0.1`,
  ])('of the URL %#', async (url) => {
    await refused(url);
  });

  it.each([
    ['port', 'none'],
    ['db', -1],
    ['keyPrefix', 7],
    ['password', [PASSWORD]],
    ['keepAlive', 'long'],
  ])('of options whose %s is wrong', async (name, value) => {
    await refused({ ...userOf('app'), [name]: value });
  });

  it.each([
    ['the path of a socket', { path: `redis://:${encoded}@127.0.0.1` }],
    ['the path of a socket without a scheme', { path: `//:${encoded}@127.0.0.1` }],
    ['a host', { host: `app:${encoded}@127.0.0.1` }],
    ['the host of a sentinel', { sentinels: [{ host: `:${encoded}@127.0.0.1` }], name: 'locks' }],
  ])('of a URL as %s', async (_what, options) => {
    await refused(options);
  });

  it.each<[string, () => unknown]>([
    ['the host of MySQL', () => new MysqlStore({ options: { host: `mysql://app:${encoded}@127.0.0.1` } })],
    ['the host of PostgreSQL', () => new PostgresStore({ settings: { host: `//app:${encoded}@127.0.0.1` } })],
    ['a slash in the password of MySQL', () => new MysqlStore({ uri: 'mysql://app:12/Wq9@127.0.0.1/app' })],
    [
      'a slash in the password of PostgreSQL',
      () => new PostgresStore({ connectionString: 'postgres://app:12/Wq9@127.0.0.1/app' }),
    ],
    [
      'a # in its password',
      () => new PostgresStore({ connectionString: 'postgres://app:12#Wq9@127.0.0.1/app' }),
    ],
  ])('of %s', async (_what, make) => {
    const error = await thrownBy(make);
    expect(error).toMatchObject({ code: 'LOCK_CONFIGURATION' });
    expect(error.message).toMatch(/options of their own|encodeURIComponent/);
  });

  it.each<[string, () => unknown]>([
    ['an error with a URL', () => new Error(`no way to redis://app:${PASSWORD}@10.0.0.1:6379/0`)],
    [
      'an error with a URL with spaces in it',
      () => new Error(`no way to redis://app:Kx7 and Wq9@10.0.0.1, or to rediss://:${encoded}@x`),
    ],
    [
      'an error with the URL as a property',
      () => Object.assign(new Error('no'), { url: `redis://:${encoded}@x` }),
    ],
    ['an error with a cause', () => new Error('no', { cause: new Error(`redis://:${encoded}@x`) })],
    ['a text', () => `redis://:${encoded}@x`],
    [
      'an error with a name and a code',
      () => Object.assign(new Error('no'), { name: `redis://:${encoded}@x`, code: `redis://:${encoded}@x` }),
    ],
  ])('of a function that throws %s', async (_what, make) => {
    const error = await refused(() => {
      throw make();
    });
    expect(error.message).toMatch(/^redis: the function that makes clients failed/);
    expect(error.cause).toBeInstanceOf(Error);
  });

  it('of a function that gives something else', async () => {
    await refused(() => `redis://app:${encoded}@127.0.0.1`);
    await refused(() => ({ url: `redis://app:${encoded}@127.0.0.1` }));
    await thrownBy(() => resolveOptions({ store: `redis://app:${encoded}@127.0.0.1` } as never));
    await thrownBy(() => resolveOptions({ redis: 'redis://x', keyPrefix: `redis://:${PASSWORD}@x` as never, waitMs: `redis://:${PASSWORD}@x` as never })); // prettier-ignore
  });
});
