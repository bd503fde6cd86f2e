import { Redis } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { until, within } from '../../support/async.js';
import { holdName, Lab, SHORT_WATCHDOG } from './lab.js';
import { storeFailure } from './store-failures.js';

/*
 * The smallest Redis user for `keyPrefix: 'lock:'`, as README has it. Commands and patterns are taken away one by one
 * below, to show that each is needed, and for what.
 */
const CONNECTION = ['+info', '+ping', '+client|info', '+client|kill'];
const SCRIPTS = ['+script|load', '+evalsha', '+eval'];
const INSIDE = [
  '+pttl', '+hexists', '+hset', '+pexpire', '+del', '+publish', // the hold
  '+time', '+get', '+set', // fencing tokens
  '+exists', '+hlen', '+hscan', // inspect() and forceUnlock()
]; // prettier-ignore
const WAKE_UPS = ['+subscribe', '+unsubscribe'];
const KEYS = ['~lock:*', '~nest_redis_lock_fence:*'];
const CHANNELS = ['&redisson_lock__channel:{lock:*', '&redisson_lock__channel:lock:*'];
const RULES = [...KEYS, ...CHANNELS, '-@all', ...CONNECTION, ...SCRIPTS, ...INSIDE, ...WAKE_UPS];

const without = (...taken: string[]) => RULES.filter((rule) => !taken.includes(rule));

let lab: Lab;
afterEach(() => lab[Symbol.asyncDispose]());

/** A server where nobody but the user with these rules gets in, and that user's client options. */
const serverFor = async (rules: readonly string[], { tls = false } = {}) => {
  lab = await Lab.start({ tls, users: [`app on >secret ${rules.join(' ')}`, 'default off'] });
  return { ...lab.server.clientOptions(), username: 'app', password: 'secret' };
};

const openFor = (user: Awaited<ReturnType<typeof serverFor>>) => lab.open({}, user);

/** What the server refused, as its log of refusals has it. */
const refusals = async (): Promise<string[]> => {
  const entries = (await lab.admin.call('ACL', 'LOG')) as unknown[][];
  return entries.map((entry) => `${String(entry[3])} ${String(entry[7])}`);
};

/** Everything the library does with Redis: taking, waiting, renewing, extending, looking, ending, by force too. */
const useEverything = async (user: Awaited<ReturnType<typeof serverFor>>) => {
  const [one, two] = [lab.open(SHORT_WATCHDOG, user), lab.open({}, user)];
  for (const key of ['order', 'stock:{7}:size']) {
    const lease = await one.locks.acquire(key);
    const channel = key.includes('{') ? `redisson_lock__channel:lock:${key}` : undefined;
    const waiting = two.locks.acquire(key, { waitMs: 20_000 });
    if (channel) {
      await until(async () => ((await lab.admin.pubsub('CHANNELS')) as string[]).includes(channel));
    } else await lab.waiting(key);
    await lease.extend(2_000);
    expect(await two.locks.inspect(key)).toMatchObject({ count: 1 });
    expect(await lease.release()).toBe('released');
    await (await within(5_000, waiting)).release();
  }
  await lab.admin.script('FLUSH');
  expect(await one.locks.withLock(['a', 'b'], { leaseMs: 5_000 }, () => 'ran')).toBe('ran');
  const forced = await one.locks.acquire('forced');
  expect(await two.locks.forceUnlock('forced')).toBe(true);
  // By its own renewal, and not by the release below.
  await until(() => forced.signal.aborted);
  expect(await forced.release()).toBe('lost');
  await one.locks.ping();
  await lab.nothingLeft(one, two);
  return [one, two] as const;
};

/** An acquire that is still on its way to Redis when its caller has given it up and has a new connection. */
const loseTheWay = async (user: Awaited<ReturnType<typeof serverFor>>) => {
  const proxy = await lab.proxy();
  const { host, port } = proxy;
  const opened = lab.open({ commandTimeoutMs: 300 }, { ...user, host, port });
  await opened.locks.ping();
  const [way] = proxy.find('ping');
  way!.blackhole(['toServer']);
  expect((await storeFailure(opened.locks.acquire('order'), /did not answer/)).outcome).toBe('unknown');
  const grants = async () => (await lab.calls())['hset'] ?? 0;
  return { opened, grants, arrive: () => way!.restore() };
};

describe('the smallest user of Redis', () => {
  it.each([{ tls: false }, { tls: true }])(
    'is enough for everything, and is refused nothing (TLS: $tls)',
    async ({ tls }) => {
      const user = await serverFor(RULES, { tls });
      const [one] = await useEverything(user);
      expect(one.log.filter((line) => line.includes('does not work'))).toEqual([]);
      expect(await refusals()).toEqual([]);
    },
  );

  it('an acquire that is late is kept from arriving: its old connection is ended', async () => {
    const { opened, grants, arrive } = await loseTheWay(await serverFor(RULES));
    await lab.nothingLeft(opened);
    arrive();
    expect(await opened.locks.withLock('another', () => 'ran')).toBe('ran');
    expect(await grants()).toBe(1);
    expect(await refusals()).toEqual([]);
  });

  it('can do nothing to other keys and channels', async () => {
    const user = await serverFor(RULES);
    const client = new Redis({ ...user, lazyConnect: true, disableClientInfo: true });
    await client.connect();
    await expect(client.set('order', '1')).rejects.toThrow('NOPERM');
    await expect(client.publish('news', '1')).rejects.toThrow('NOPERM');
    await expect(client.keys('*')).rejects.toThrow('NOPERM');
    client.disconnect();
    await expect(lab.open({ keyPrefix: 'other:' }, user).locks.acquire('order')).rejects.toMatchObject({
      code: 'LOCK_STORE_FAILED',
    });
  });

  it('needs its password over TLS, and the certificate has to be trusted', async () => {
    const user = await serverFor(RULES, { tls: true });
    const untrusting = { ...user, tls: {} };
    await storeFailure(lab.open({ commandTimeoutMs: 400 }, untrusting).locks.acquire('order'), /self-signed/);
    const stranger = { ...user, password: 'wrong' };
    await storeFailure(lab.open({ commandTimeoutMs: 400 }, stranger).locks.acquire('order'), /WRONGPASS/);
  });
});

describe('a user who may not', () => {
  const works = async (user: Awaited<ReturnType<typeof serverFor>>) => {
    await useEverything(user);
    return refusals();
  };

  it('SCRIPT LOAD: all works, scripts are sent in full once', async () => {
    expect(new Set(await works(await serverFor(without('+script|load'))))).toEqual(
      new Set(['command script|load']),
    );
  });

  it('EVAL: all works while SCRIPT LOAD is there, until somebody flushes the scripts', async () => {
    const opened = openFor(await serverFor(without('+eval')));
    expect(await opened.locks.withLock('order', () => 'ran')).toBe('ran');
    expect(await refusals()).toEqual([]);
    await lab.admin.script('FLUSH');
    await storeFailure(opened.locks.acquire('order'), /eval/);
  });

  it('INFO: all works; ioredis says that it cannot tell whether a server is still loading', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    try {
      expect(new Set(await works(await serverFor(without('+info'))))).toEqual(new Set(['command info']));
      expect(warn).toHaveBeenCalledWith(expect.stringContaining('Skipping the ready check'));
    } finally {
      warn.mockRestore();
    }
  });

  it('PING: locks work, ping() says that the permission is missing', async () => {
    const opened = openFor(await serverFor(without('+ping')));
    expect(await opened.locks.withLock('order', () => 'ran')).toBe('ran');
    await storeFailure(opened.locks.ping(), /ping/);
  });

  it.each([
    ['CLIENT KILL', '+client|kill'],
    ['CLIENT INFO', '+client|info'],
  ])(
    '%s: an acquire that is late arrives, and is found and undone by asking again and again',
    async (_name, rule) => {
      const { opened, grants, arrive } = await loseTheWay(await serverFor(without(rule)));
      expect(opened.locks.usage.undoing).toBe(1);
      arrive();
      await until(async () => (await grants()) === 1, { what: 'the late acquire has arrived' });
      await lab.nothingLeft(opened);
      expect(await opened.locks.withLock('order', () => 'ran')).toBe('ran');
    },
  );

  it('CLIENT INFO and CLIENT KILL: everything else works', async () => {
    const refused = await works(await serverFor(without('+client|info', '+client|kill')));
    expect(refused.every((one) => /client/.test(one))).toBe(true);
  });

  it('SUBSCRIBE: free locks work, waiting for a taken one is a failure of the store that says so', async () => {
    const user = await serverFor(without('+subscribe'));
    const [one, two] = [openFor(user), openFor(user)];
    const lease = await one.locks.acquire('order');
    await storeFailure(two.locks.acquire('order', { waitMs: 20_000 }), /SUBSCRIBE/);
    expect(await two.locks.tryAcquire('order')).toBeNull();
    await lease.release();
    expect(await two.locks.withLock('order', () => 'ran')).toBe('ran');
  });

  it('UNSUBSCRIBE: locks work, but the server keeps every subscription until the connection ends', async () => {
    const user = await serverFor(without('+unsubscribe'));
    const [one, two] = [openFor(user), openFor(user)];
    for (const key of ['order', 'stock']) {
      const lease = await one.locks.acquire(key);
      const waiting = two.locks.acquire(key, { waitMs: 20_000 });
      await lab.waiting(key);
      await lease.release();
      await (await within(5_000, waiting)).release();
    }
    expect([await lab.listeners('order'), await lab.listeners('stock')]).toEqual([1, 1]);
    expect(two.locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
    await two.close();
    await lab.nothingLeft();
  });

  it('PUBLISH: the release fails before it has changed anything, and says so', async () => {
    const opened = openFor(await serverFor(without('+publish')));
    const lease = await opened.locks.acquire('order');
    await storeFailure(lease.release(), /can't run this command/);
    expect(await refusals()).toContain('command publish');
    expect(await lab.hold('order')).not.toBeNull();
  });

  it.each(INSIDE.filter((rule) => rule !== '+publish'))(
    '%s: what needs it fails as a failure of the store, and leaves no hold without an end',
    async (rule) => {
      const opened = openFor(await serverFor(without(rule)));
      const attempt = async () => {
        const lease = await opened.locks.acquire('order');
        await opened.locks.inspect('order');
        await lease.extend(60_000);
        await opened.locks.forceUnlock('order');
        await lease.release();
      };
      await storeFailure(attempt(), /can't run this command/);
      expect(await refusals()).toContain(`command ${rule.slice(1)}`);
      expect(await lab.admin.pttl(holdName('order'))).not.toBe(-1);
    },
  );
});
