import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { inspect } from 'node:util';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockConfigurationError } from 'nest-redis-lock';
import { ZooKeeperStore, type ZooKeeperStoreOptions } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { storeHost } from '../../support/stores/store-host.js';
import { JuteWriter } from '../../../lib/stores/zookeeper/jute.js';
import { openLocksOn } from '../../support/stores/open-locks-on.js';
import { listenOnFreePort } from '../../support/loopback.js';
import { until } from '../../support/async.js';
import { ZooKeeperServer } from '../../support/servers/zookeeper-server.js';
import { newKey, pathOf, ZooKeeperLab } from '../../support/zookeeper/zookeeper-lab.js';

const IDENTITY = 'app:secret';
const ALL_RIGHTS = 31;

/** An ACL for one identity, as a server stores it. */
const aclFor = (identity: string, rights = ALL_RIGHTS) => {
  const [user] = identity.split(':');
  const digest = createHash('sha1').update(identity).digest('base64');
  return [{ rights, scheme: 'digest', id: `${user}:${digest}` }];
};

let lab: ZooKeeperLab;
beforeAll(async () => {
  lab = await ZooKeeperLab.start({ tls: true, minSessionTimeoutMs: 4_000, maxSessionTimeoutMs: 40_000 });
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

const READ = 1;

describe('ZooKeeperStore refuses', () => {
  const connect = '127.0.0.1:1';
  it.each<[string, object, RegExp]>([
    ['no connect', {}, /^connect must be servers such as "zk1:2181,.*, but is undefined\.$/],
    ['an empty connect', { connect: '' }, /^connect must be servers/],
    ['a server without a name', { connect: 'a:1,,b:1' }, /^connect must be servers.*"a:1,,b:1"/],
    ['a port that is none', { connect: 'a:70000' }, /^connect must be servers/],
    ['a connect with a scheme', { connect: 'zk://a:2181' }, /^connect must be servers/],
    ['a connect with a user', { connect: 'user@a:2181' }, /^connect must be servers((?!user@).)*auth\.$/],
    ['and a password', { connect: 'user:s3cr3t@a:2181' }, /^connect must be servers((?!s3cr3t).)*auth\.$/],
    [
      'a chroot with an empty segment',
      { connect: 'a:1/x//y' },
      /^The chroot of connect must .*no empty segment/,
    ],
    ['an empty basePath', { connect, basePath: '' }, /^basePath must be a path such as "\/locks", but is ""/],
    [
      'a basePath without a slash',
      { connect, basePath: 'locks' },
      /^basePath must begin with "\/", but is "locks"/,
    ],
    [
      'a basePath with a slash at its end',
      { connect, basePath: '/locks/' },
      /^basePath must .*no "\/" at its end/,
    ],
    ['a basePath with dots', { connect, basePath: '/a/../b' }, /^basePath must .*"\.\."/],
    [
      'a basePath with a control character',
      { connect, basePath: '/a\n' },
      /^basePath must have no control char/,
    ],
    [
      "a basePath that is the server's",
      { connect, basePath: '/zookeeper/x' },
      /^basePath must not be in "\/zookeeper"/,
    ],
    [
      'a basePath that is no text',
      { connect, basePath: 5 },
      /^basePath must be a path such as "\/locks", but is 5/,
    ],
    ['a path that is no function', { connect, path: '/x' }, /^path must be a function/],
    [
      'a digest without a colon',
      { connect, auth: { digest: 'secret' } },
      /^auth must be \{ digest: 'user:password' \}\.$/,
    ],
    ['an auth of another form', { connect, auth: IDENTITY }, /^auth must be \{ digest/],
    ['a tls that is no object', { connect, tls: 'yes' }, /^tls must be true, or options of tls\.connect/],
    ['a sessionTimeoutMs of 0', { connect, sessionTimeoutMs: 0 }, /^sessionTimeoutMs must be a whole number/],
    [
      'a sessionTimeoutMs of 25 days',
      { connect, sessionTimeoutMs: 2 ** 31 },
      /^sessionTimeoutMs must be .*2147483647/,
    ],
    ['a commandTimeoutMs of 0', { connect, commandTimeoutMs: 0 }, /^commandTimeoutMs must be a whole number/],
    ['an unknown option', { connect, base: '/x' }, /\bbase\b.*basePath/],
  ])('%s', (_, options, message) => {
    const make = () => new ZooKeeperStore(options as ZooKeeperStoreOptions);
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(message);
    expect(make).not.toThrow(/secret/);
  });

  it('undefined nowhere: it is the default', () => {
    const options = { basePath: undefined, path: undefined, auth: undefined, tls: undefined };
    expect(() => new ZooKeeperStore({ connect, ...options, sessionTimeoutMs: undefined })).not.toThrow();
  });
});

describe('ZooKeeperStore does not open', () => {
  const refusal = async (options: Partial<ZooKeeperStoreOptions>): Promise<string> => {
    const error: unknown = await lab
      .store(options)
      .open(storeHost())
      .then(undefined, (thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('secret');
    return (error as Error).message;
  };

  it.each([
    [3, 4_000],
    [1_000, 4_000],
    [60_000, 40_000],
  ])(
    'with a sessionTimeoutMs of %i, and says that the servers grant %i',
    async (sessionTimeoutMs, granted) => {
      expect(await refusal({ sessionTimeoutMs })).toMatch(
        new RegExp(`^sessionTimeoutMs is ${sessionTimeoutMs}, but the servers grant ${granted} ms\\.`),
      );
    },
  );

  it('with a chroot that does not exist', async () => {
    expect(await refusal({ connect: `${lab.connect}/none` })).toMatch(
      /chroot "\/none" .* does not exist.*create \/none/,
    );
  });

  it.each([
    ['no identity', undefined],
    ['a wrong password', { digest: 'app:wrong' }],
  ])('with %s for nodes that belong to one', async (_, auth) => {
    const basePath = `/${newKey('owned')}`;
    await lab.createNode(basePath, aclFor(IDENTITY));
    expect(await refusal({ basePath, auth })).toMatch(
      /does not let this app use "\/owned.*create, delete and read/,
    );
  });

  it('without the right to delete', async () => {
    const basePath = `/${newKey('kept')}`;
    const [read, write, createNodes] = [1, 2, 4];
    await lab.createNode(basePath, aclFor(IDENTITY, read | write | createNodes));
    expect(await refusal({ basePath, auth: { digest: IDENTITY } })).toMatch(/create, delete and read/);
  });
});

describe('ZooKeeperStore opens', () => {
  it('with the smallest ACL of the page, and its nodes belong to its identity', async () => {
    const basePath = `/${newKey('smallest')}`;
    const [read, createNodes, deleteNodes] = [1, 4, 8];
    await lab.createNode(basePath, aclFor(IDENTITY, read | createNodes | deleteNodes));
    const auth = { digest: IDENTITY };
    const mine = lab.open({}, { basePath, auth });
    await mine.manager.open();
    const lease = await mine.locks.acquire('a');
    expect(inspect(lab.store({ auth }), { depth: 20 })).not.toContain('secret');
    const other = lab.open({}, { basePath });
    await expect(other.locks.acquire('a')).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    const third = lab.open({}, { basePath, auth });
    const next = third.locks.acquire('a', { waitMs: 20_000 });
    await until(async () => (await third.locks.inspect('a'))?.waiting.length === 1, { what: 'it waits' });
    await lease.release();
    await (await next).release();
  });

  it('in a chroot, and all of its nodes are there', async () => {
    const chroot = `/${newKey('chroot')}`;
    await lab.createNode(chroot);
    const { manager, locks } = lab.open({}, { connect: `${lab.connect}${chroot}` });
    await manager.open();
    const lease = await locks.acquire('a');
    expect(await lab.children(`${chroot}/locks/lock:a`)).toHaveLength(1);
    await lease.release();
  });

  it('with TLS, and not when it does not trust the server', async () => {
    const { tlsAddress, certificate } = lab.server;
    const { manager, locks } = lab.open({}, { connect: tlsAddress, tls: { ca: certificate!.cert } });
    await manager.open();
    await locks.withLock(newKey(), () => undefined);
    const distrusting = lab.open({}, { connect: tlsAddress, tls: true, commandTimeoutMs: 1_000 });
    await expect(distrusting.locks.acquire(newKey())).rejects.toMatchObject({
      code: 'LOCK_STORE_FAILED',
      outcome: 'not-executed',
      message: expect.stringMatching(/self-signed certificate/) as string,
    });
  });

  it('and warns when the servers grant another session than watchdogMs', async () => {
    const [longer, granted] = [lab.open({ watchdogMs: 60_000 }), lab.open({ watchdogMs: 30_000 })];
    await Promise.all([longer.manager.open(), granted.manager.open()]);
    expect(longer.log).toEqual([expect.stringMatching(/grants a session of 40000 ms instead of 60000 ms/)]);
    expect(granted.log).toEqual([]);
  });

  it('and says with the first token how small tokens are, once, and not without fencing', async () => {
    const [fenced, plain] = [lab.open(), lab.open({ fencing: false })];
    for (const { manager, locks } of [fenced, plain]) {
      await manager.open();
      for (let i = 0; i < 3; i += 1) await locks.withLock(newKey(), () => undefined);
    }
    expect(fenced.log).toEqual([
      expect.stringMatching(/^The first fencing token is \d+: .*refuses all tokens/),
    ]);
    expect(plain.log).toEqual([]);
  });

  it('for two services at once, without a complaint', async () => {
    const store = lab.store();
    const services = [openLocksOn(store), openLocksOn(store)];
    await Promise.all(services.map(({ manager }) => manager.open()));
    expect(services.flatMap(({ log }) => log)).toEqual([]);
  });

  it.each([
    ['HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n', /does not speak ZooKeeper's protocol.*"HTTP"/],
    ['nothing, and closes', '', /closed the connection/],
  ])('and requests say what is wrong with a server that says %s', async (_, said, message) => {
    const server = createServer((socket) => socket.on('error', () => undefined).end(said));
    const port = await listenOnFreePort(server);
    const { locks } = lab.open({}, { connect: `127.0.0.1:${port}`, commandTimeoutMs: 500 });
    await expect(locks.acquire('a')).rejects.toThrow(message);
    server.close();
  });

  it('and leaves a server alone for a moment that begins sessions and closes connections', async () => {
    const greeting = new JuteWriter().int(0).int(30_000).long(1n).bytes(Buffer.alloc(16)).frame();
    const times: number[] = [];
    const server = createServer((socket) => {
      times.push(performance.now());
      socket.on('error', () => undefined).on('data', () => socket.end(greeting));
    });
    const port = await listenOnFreePort(server);
    const { locks } = lab.open({}, { connect: `127.0.0.1:${port}` });
    locks.ping().catch(() => undefined);
    await until(() => times.length > 5, { what: 'it connects again' });
    server.close();
    expect(times[5]! - times[0]!).toBeGreaterThan(400);
  });

  it('without a server: the app starts and warns, and has locks as soon as there is one', async () => {
    await using server = await ZooKeeperServer.start();
    await server.kill('SIGKILL');
    const { manager, locks, log } = lab.open({}, { connect: server.address, commandTimeoutMs: 500 });
    await manager.open();
    expect(log).toEqual([expect.stringMatching(/^The lock store does not work: .*ECONNREFUSED/)]);
    await expect(locks.acquire('a')).rejects.toMatchObject({
      code: 'LOCK_STORE_FAILED',
      outcome: 'not-executed',
    });
    await server.restart();
    await until(() => locks.withLock('a', () => true).catch(() => false), { what: 'the key is locked' });
    expect(log).toContainEqual(expect.stringMatching(/^The lock store works again/));
  });
});

describe('ZooKeeper refuses by name', () => {
  it('fair locks', async () => {
    const { locks } = lab.open();
    const acquiring = locks.acquire(newKey(), { mode: 'fair' });
    await expect(acquiring).rejects.toThrow('ZooKeeper cannot keep locks of the kind "fair"');
  });

  it('semaphores, latches, holdAtLeastMs, and an extension past the session', async () => {
    const { locks } = lab.open({ watchdogMs: 30_000 });
    expect(() => locks.semaphore(newKey())).toThrow('ZooKeeper cannot keep semaphores');
    expect(() => locks.countDownLatch(newKey())).toThrow(/ZooKeeper cannot keep .*latches/);
    await expect(locks.acquire(newKey(), { holdAtLeastMs: 10 })).rejects.toThrow(
      /^holdAtLeastMs: ZooKeeper ends/,
    );
    const lease = await locks.acquire(newKey());
    await expect(lease.extend(31_000)).rejects.toThrow(
      /extend\(31000\): ZooKeeper ends locks 30000 ms after/,
    );
    await lease.release();
  });

  const pathed = (path: (key: string) => string) => lab.open({ keyPrefix: '' }, { path });

  it.each([
    ['a control character', '/a\u0007', /no control character/],
    ['no slash at its beginning', 'a', /begin with "\/"/],
    ['an empty segment', '/a//b', /no empty segment/],
    ['the root', '/', /below the root/],
    ['more characters than a request has room for', `/${'x'.repeat(200_000)}`, /at most 200000 characters/],
  ])('a path with %s', async (_, path, message) => {
    const refusal = pathed(() => path).locks.acquire('key-of-path');
    await expect(refusal).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID', key: 'key-of-path' });
    await expect(refusal).rejects.toThrow(message);
    await expect(pathed(() => path).locks.inspect('key-of-path')).rejects.toMatchObject({
      code: 'LOCK_KEY_INVALID',
    });
  });

  it('a path that lies inside the lock of another key, and the other way round', async () => {
    const outer = `/${newKey('outer')}`;
    const { locks } = pathed((key) => (key === 'outer' ? outer : `${outer}/${key}`));
    const lease = await locks.acquire('outer');
    await expect(locks.acquire('inner')).rejects.toThrow(/inside the lock of another key/);
    await lease.release();
    await locks.withLock('inner', () => undefined);
    await expect(locks.acquire('outer')).rejects.toThrow(/another node inside its own/);
    expect(await lab.children(outer)).toEqual(['inner']);
  });
});

describe('a key in ZooKeeper', () => {
  it('is for a lock or for permits, and both say so', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const lease = await locks.acquire(key);
    const permits = locks.permits(key, { permits: 1 });
    await expect(permits.acquire()).rejects.toThrow(/A key is for permits or for a lock/);
    await lease.release();
    await (await permits.acquire()).release();
    await expect(locks.acquire(key)).rejects.toThrow(/A key is for permits or for a lock/);
  });

  it("is not the name of the server's own nodes", async () => {
    const { locks } = lab.open({ keyPrefix: '' }, { basePath: '/' });
    await expect(locks.acquire('zookeeper')).rejects.toThrow(/own nodes\. Set basePath/);
    await expect(locks.permits('zookeeper', { permits: 1 }).acquire()).rejects.toThrow(/Set basePath/);
  });
});

describe('a waiter that has lost its right to read', () => {
  it('gets that failure when its wait is over, and is not told that the key is taken', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    const leases = `${pathOf(key)}/leases`;
    const lease = await holder.locks.permits(key, { permits: 1 }).acquire();
    const waiting = waiter.locks.permits(key, { permits: 1 }).acquire({ waitMs: 2_000 });
    waiting.catch(() => undefined);
    await until(async () => (await lab.children(leases)).length === 2, { what: 'the caller waits' });
    await lab.setRights(leases, ALL_RIGHTS & ~READ);
    await lease.release();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await lab.setRights(leases, ALL_RIGHTS);
    await (await holder.locks.permits(key, { permits: 1 }).acquire({ waitMs: 60_000 })).release();
  });
});

describe('locks under paths of their own', () => {
  it('are where the option says', async () => {
    const { locks } = lab.open({}, { path: (key) => `/orders/${key.replace(':', '/')}` });
    const lease = await locks.acquire('42');
    expect(await lab.children('/orders/lock/42')).toHaveLength(1);
    await lease.release();
  });
});

describe('a forced unlock', () => {
  it('is noticed by the process that held the lock, without a renewal', async () => {
    const [mine, other] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await mine.locks.acquire(key);
    expect(await other.locks.forceUnlock(key)).toBe(true);
    await until(() => lease.signal.aborted, { what: 'the lock is lost' });
    expect(mine.lost).toMatchObject([{ key, reason: 'refused' }]);
  });
});

describe('a waiter whose node another client deletes', () => {
  it.each([
    ['exclusive', 'exclusive'],
    ['write', 'read'],
  ] as const)('waits on behind the others, and gets no lock beside them: %s, %s', async (held, mode) => {
    const [holder, waiter, next] = [lab.open(), lab.open(), lab.open()];
    const key = newKey();
    const lease = await holder.locks.acquire(key, { mode: held });
    let granted = false;
    const waiting = waiter.locks.acquire(key, { mode, waitMs: 60_000 });
    void waiting.then(() => (granted = true));
    await lab.isQueued(key, waiter);
    const [, node] = await lab.nodes(key);
    const last = next.locks.acquire(key, { mode: held, waitMs: 60_000 });
    await lab.nodesAre(key, 3);
    await lab.deleteNode(`${pathOf(key)}/${node}`);
    await lease.release();
    const lastLease = await last;
    // It has another node by then, behind the holder's.
    await lab.nodesAre(key, 2);
    expect([granted, lastLease.lost, await lastLease.verify()]).toEqual([false, false, true]);
    await lastLease.release();
    await (await waiting).release();
  });
});

describe('a claim that does not wait', () => {
  it('writes nothing when the lock is taken', async () => {
    const [mine, other] = [lab.open(), lab.open()];
    const key = newKey();
    await Promise.all([mine.manager.open(), other.manager.open()]);
    const lease = await mine.locks.acquire(key);
    const written = async (): Promise<string> => /^Zxid: (\w+)/m.exec(await lab.server.command('srvr'))![1]!;
    const before = await written();
    for (let i = 0; i < 5; i += 1) expect((await other.locks.tryWithLock(key, () => 1)).ran).toBe(false);
    expect(await written()).toBe(before);
    await lease.release();
  });
});

describe('a container of locks that the server removes', () => {
  it('is made again by the next claim', async () => {
    await using own = await ZooKeeperLab.start({ containerCheckMs: 50 });
    const { locks } = own.open();
    for (let i = 0; i < 5; i += 1) {
      await locks.withLock('a', () => undefined);
      await until(async () => (await own.children('/locks')).length === 0, { what: 'the container is gone' });
    }
    await locks.withLock('a', () => undefined);
  });
});
