import { Redis, type RedisOptions } from 'ioredis';
import type { LockStoreError } from 'nest-redis-lock';
import type { RedisSource } from 'nest-redis-lock/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { ownClientOptions } from '../../lib/stores/redis/connection/redis-settings.js';
import { until, within } from '../support/async.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { COMMAND_TIMEOUT_MS, everythingFails, storeFailure } from '../support/redis/store-failures.js';

/*
 * Locks in the wrong database exclude no other caller. ioredis continues in database 0 when its SELECT is refused. So
 * the store must acquire nothing before its own SELECT has been answered.
 */
const RULES = 'on >secret ~* &* +@all';
const DB = 5;

const lab = useLab({ config: ['lua-time-limit 20'] });
beforeEach(() => mayDo('+select'));

const mayDo = (rule: string) => lab.admin.call('ACL', 'SETUSER', 'app', 'reset', ...RULES.split(' '), rule);

const user = (db: number): RedisOptions => ({
  ...lab.server.clientOptions(),
  username: 'app',
  password: 'secret',
  db,
});

const open = (redis: RedisSource = user(DB)): OpenLocks =>
  lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS }, redis);

/** Plants a hold in the right database, like an instance that was there before. */
const heldElsewhere = async (key: string): Promise<void> => {
  await lab.admin.multi().select(DB).hset(holdName(key), 'another:1', '1').select(0).exec();
};

const databasesWith = async (key: string): Promise<number[]> => {
  const found: number[] = [];
  for (const db of [0, DB]) {
    const replies = await lab.admin.multi().select(db).exists(holdName(key)).select(0).exec();
    if (replies?.[1]?.[1] === 1) found.push(db);
  }
  return found;
};

/** Ends the connections of the user, and resolves once they have ended. */
const killAll = async (): Promise<void> => {
  const ended = (await lab.admin.call('CLIENT', 'KILL', 'USER', 'app')) as number;
  expect(ended).toBeGreaterThan(0);
};

const makers: Readonly<Record<string, () => RedisSource | Promise<RedisSource>>> = {
  options: () => user(DB),
  'a URL': () => `redis://app:secret@${lab.server.host}:${lab.server.port}/${DB}`,
  'a function': () => (_role: string, settings: RedisOptions) => new Redis({ ...user(DB), ...settings }),
  'a client': () => new Redis({ ...user(DB), lazyConnect: true }),
  'a client that has chosen it since': async () => {
    const client = new Redis({ ...user(0) });
    await client.select(DB);
    client.disconnect();
    return client;
  },
  'a function whose clients have chosen it since': async () => {
    const settings = ownClientOptions(COMMAND_TIMEOUT_MS);
    const clients = await Promise.all(
      [1, 2].map(async () => {
        const client = new Redis({ ...user(0), ...settings });
        await client.connect();
        await client.select(DB);
        return client;
      }),
    );
    return () => clients.shift()!;
  },
};

describe.each(Object.entries(makers))('the database of %s', (_what, make) => {
  it('is where locks are, also after a reconnect', async () => {
    const { locks } = open(await make());
    for (const key of [newKey(), newKey()]) {
      const lease = await locks.acquire(key);
      expect(await databasesWith(key)).toEqual([DB]);
      await lease.release();
      await killAll();
      await until(() => locks.ping().then(() => true));
    }
  });

  it('is refused after a reconnect: no lock is taken in another one', async () => {
    const opened = open(await make());
    const key = newKey();
    await opened.locks.withLock('before', () => undefined);
    await heldElsewhere(key);
    await mayDo('-select');
    await killAll();
    // Until the end of the old connection is known, commands on it fail in another way.
    const failure = await until(() =>
      opened.locks.tryAcquire(key).then(
        (lease) => (lease ? 'granted' : undefined),
        (error: LockStoreError) => (error.message.includes('SELECT') ? error : undefined),
      ),
    );
    expect(failure).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'not-executed' });
    expect(await databasesWith(key)).toEqual([DB]);
  });
});

describe('a database that Redis refuses', () => {
  it('for want of a permission: everything says so, and works once it is given, in that database', async () => {
    await mayDo('-select');
    const opened = open();
    await everythingFails(opened, newKey(), /Redis refused SELECT 5 \(NOPERM .*allow the user \+select/);
    expect(await lab.leftovers()).toEqual([]);
    await mayDo('+select');
    const key = newKey();
    const lease = await opened.locks.acquire(key);
    expect(await databasesWith(key)).toEqual([DB]);
    await lease.release();
    expect(opened.events('store-down')).toHaveLength(1);
    expect(opened.events('store-up')).toHaveLength(1);
  });

  it('because it has none of this number: everything says so', async () => {
    await everythingFails(open(user(99)), newKey(), /Redis refused SELECT 99 \(ERR .*out of range/);
    expect(await lab.leftovers()).toEqual([]);
  });

  it('is not repeated again and again while no caller requests a lock', async () => {
    await mayDo('-select');
    await lab.admin.config('RESETSTAT');
    const { locks } = open();
    await storeFailure(locks.acquire(newKey()), /SELECT/);
    const before = await lab.admin.info('commandstats');
    const clock = await lab.open().locks.acquire('clock', { leaseMs: 300 });
    await until(() => clock.lost);
    const selects = (stats: string) => /cmdstat_select:.*rejected_calls=(\d+)/.exec(stats)?.[1];
    expect(selects(before)).toBeDefined();
    expect(selects(await lab.admin.info('commandstats'))).toBe(selects(before));
  });

  it('is no matter for database 0, which needs no permission', async () => {
    await mayDo('-select');
    expect(await open(user(0)).locks.withLock(newKey(), () => 'ran')).toBe('ran');
  });
});

describe('a server that is busy with a script', () => {
  /** Runs a script without end. It is over when the returned function has been called. */
  const startScript = async (): Promise<() => Promise<void>> => {
    const client = lab.admin.duplicate();
    const ended = client.eval('while true do end', 0).catch(() => undefined);
    await until(() => lab.admin.ping().then(() => false, (error: Error) => error.message.startsWith('BUSY'))); // prettier-ignore
    return async () => {
      await lab.admin.script('KILL');
      await ended;
      client.disconnect();
    };
  };

  /** A service behind a proxy, and a holder of the key. */
  const behindProxy = async (key: string) => {
    const proxy = await lab.proxy();
    const opened = open({ ...user(DB), port: proxy.port });
    await opened.locks.ping();
    await heldElsewhere(key);
    return { proxy, opened, commands: proxy.find('ping')[0]! };
  };

  it('while the client reconnects, and free when it is ready: the lock is still in its database', async () => {
    const key = newKey();
    const { proxy, opened, commands } = await behindProxy(key);
    // What ioredis sends after its SELECT was refused arrives when the script has ended.
    const refused = new Promise<() => void>((resolve) => {
      proxy.onData((connection, direction, chunk) => {
        if (direction !== 'toClient' || !chunk.toString().includes('-BUSY')) return;
        connection.blackhole(['toServer']);
        resolve(() => connection.restore());
      });
    });
    const endScript = await startScript();
    commands.cut();
    const goOn = await within(5_000, refused, 'a refusal');
    await endScript();
    goOn();
    const outcome = await until(() => opened.locks.tryAcquire(key).then((lease) => ({ lease }), () => undefined)); // prettier-ignore
    expect(outcome.lease, 'somebody else holds it').toBeNull();
    expect(await databasesWith(key)).toEqual([DB]);
  });

  /** Holds back the SELECT of the store itself until a script runs; ends with that script running. */
  const busyAtOwnSelect = async (key: string) => {
    const { proxy, opened, commands } = await behindProxy(key);
    const selects = new Map<unknown, number>();
    const held = new Promise<() => void>((resolve) => {
      proxy.onData((connection, direction, chunk) => {
        if (direction !== 'toServer') return;
        const count =
          (selects.get(connection) ?? 0) + (chunk.toString().match(/\r\nselect\r\n/gi)?.length ?? 0);
        selects.set(connection, count);
        // The other connection sends one only.
        if (count !== 2) return;
        connection.blackhole(['toServer']);
        resolve(() => connection.restore());
      });
    });
    commands.cut();
    const goOn = await within(5_000, held, 'a SELECT of the store');
    const endScript = await startScript();
    const busy = new Promise<void>((resolve) => {
      proxy.onData((_connection, direction, chunk) => {
        if (direction === 'toClient' && chunk.toString().includes('-BUSY')) resolve();
      });
    });
    goOn();
    return { opened, endScript, busy };
  };

  it('at the very SELECT of the store: it is asked again until the script has ended', async () => {
    const key = newKey();
    const { opened, endScript, busy } = await busyAtOwnSelect(key);
    const requested = opened.locks.tryAcquire(key);
    await within(5_000, busy, 'a refusal');
    await endScript();
    expect(await requested.catch((error: unknown) => error)).toBeNull();
    expect(await databasesWith(key)).toEqual([DB]);
  });

  it('for longer than the time-out: no caller gets a lock, and the error says why', async () => {
    const key = newKey();
    const { opened, endScript, busy } = await busyAtOwnSelect(key);
    await within(5_000, busy, 'a refusal');
    await storeFailure(opened.locks.tryAcquire(key), /BUSY/);
    await endScript();
    expect(await until(() => opened.locks.withLock('another', () => 'ran').catch(() => undefined))).toBe(
      'ran',
    );
    expect(await databasesWith(key)).toEqual([DB]);
  });
});
