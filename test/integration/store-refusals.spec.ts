import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, Lab, SHORT_WATCHDOG } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import {
  COMMAND_TIMEOUT_MS as commandTimeoutMs,
  everythingFails,
  expectOneOutage,
  storeFailure,
  worksAgain,
} from '../support/redis/store-failures.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

/** A server that takes far longer than any test to load its data, until it is told to hurry. */
const slowLoader = async () => {
  const lab = await Lab.start({
    config: ['enable-debug-command yes', 'key-load-delay 5000', 'loading-process-events-interval-bytes 1024'],
  });
  const fill = "for i = 1, 4000 do redis.call('set', 'filler:' .. i, string.rep('x', 100)) end";
  await lab.admin.eval(fill, 0);
  return { lab, hurry: () => lab.server.cli('CONFIG', 'SET', 'key-load-delay', '0') };
};

const isLoading = async (lab: Lab) => (await lab.server.text('INFO', 'persistence')).includes('loading:1');

describe('a replica (READONLY)', () => {
  const startMaster = () => Lab.start({ config: ['repl-diskless-sync-delay 0'] });
  const follows = (lab: Lab) =>
    until(async () => (await lab.server.text('INFO', 'replication')).includes('master_link_status:up'));

  it('is a store that failed, and works as soon as it is a master', async () => {
    await using master = await startMaster();
    await using lab = await Lab.start({ config: [`replicaof 127.0.0.1 ${master.server.port}`] });
    await follows(lab);
    const opened = lab.open({ commandTimeoutMs });
    for (const request of [
      () => opened.locks.acquire('order', { waitMs: 20_000 }),
      () => opened.locks.tryAcquire('order'),
      () => opened.locks.withLock('order', () => 'ran'),
    ]) {
      const failure = await storeFailure(request(), /READONLY/);
      expect(failure.outcome).toBe('not-executed');
    }
    expect(await master.leftovers()).toEqual([]);
    await lab.server.cli('REPLICAOF', 'NO', 'ONE');
    await worksAgain(opened, 'order');
    expectOneOutage(opened);
  });

  it('made of a master that holds locks: they are lost, and new ones are a failure, not "taken"', async () => {
    await using master = await startMaster();
    await using lab = await Lab.start();
    const opened = lab.open({ commandTimeoutMs, watchdogMs: 1_500 });
    const lease = await opened.locks.acquire('held');
    await lab.server.cli('REPLICAOF', '127.0.0.1', master.server.port);
    await follows(lab);
    await storeFailure(opened.locks.acquire('order', { waitMs: 20_000 }), /READONLY/);
    await until(() => lease.signal.aborted);
    expect(await lease.release()).toBe('lost');
    await lab.server.cli('REPLICAOF', 'NO', 'ONE');
    await worksAgain(opened, 'held');
  });
});

describe('a server that loads its data (LOADING)', () => {
  it('met when connecting: a failure of the store, and soon after it has loaded all works', async () => {
    const { lab, hurry } = await slowLoader();
    await using _lab = lab;
    const restarting = lab.server.restart();
    const expectedSeconds = async () =>
      Number(/loading_eta_seconds:(\d+)/.exec(await lab.server.text('INFO', 'persistence'))?.[1]);
    await until(async () => (await expectedSeconds()) > 5, {
      what: 'the server knows that it will take long',
    });
    const opened = lab.open({ commandTimeoutMs });
    await everythingFails(opened, 'order', /no connection to Redis|LOADING/);
    expect(await isLoading(lab)).toBe(true);
    // Long before the time that the server itself still expected to need.
    await hurry();
    await restarting;
    const loadedAt = performance.now();
    await worksAgain(opened, 'order');
    expect(performance.now() - loadedAt).toBeLessThan(2_000);
    expectOneOutage(opened);
  });

  it('met on a connection in use: a failure of the store as well, and what was held is still held afterwards', async () => {
    const { lab, hurry } = await slowLoader();
    await using _lab = lab;
    const opened = lab.open({ commandTimeoutMs });
    const lease = await opened.locks.acquire('held');
    const reloading = lab.server.cli('DEBUG', 'RELOAD');
    await until(() => isLoading(lab));
    await everythingFails(opened, 'order', /LOADING/);
    await hurry();
    expect(await reloading).toBe('OK');
    await worksAgain(opened, 'order');
    expectOneOutage(opened);
    expect(await lease.release()).toBe('released');
  });
});

describe('a server without a command, as vendors take them away', () => {
  it.each(['info', 'client', 'config', 'script', 'pubsub'])('gives locks without %s', async (name) => {
    await using lab = await Lab.start({ config: [`rename-command ${name} hidden-${name}`] });
    const { locks, store } = lab.open({ commandTimeoutMs });
    expect(await locks.withLock('order', () => 'ran')).toBe('ran');
    expect(await store.diagnose()).not.toContainEqual(expect.stringContaining('scripts'));
  });

  it('says at the start that it runs no scripts, and each lock fails with its reason', async () => {
    await using lab = await Lab.start({ config: ['rename-command eval ""', 'rename-command evalsha ""'] });
    const { locks, store } = lab.open({ commandTimeoutMs });
    expect(await store.diagnose()).toContainEqual(
      expect.stringMatching(/^Redis runs no scripts \(ERR unknown command 'evalsha'/),
    );
    await storeFailure(locks.acquire('order'), /unknown command 'evalsha'/);
  });
});

describe('a server out of memory (OOM, noeviction)', () => {
  const starve = (lab: Lab) => lab.server.cli('CONFIG', 'SET', 'maxmemory', '1');
  const feed = (lab: Lab) => lab.server.cli('CONFIG', 'SET', 'maxmemory', '0');

  const ways = [{ fencing: true }, { fencing: false }];
  it.each(ways)(
    'refuses new locks, as a failure, until there is room again (fencing: $fencing)',
    async ({ fencing }) => {
      await using lab = await Lab.start({ config: ['maxmemory-policy noeviction'] });
      const opened = lab.open({ commandTimeoutMs, fencing });
      await opened.locks.withLock('warm', () => undefined);
      await starve(lab);
      const failure = await storeFailure(opened.locks.acquire('order', { waitMs: 20_000 }), /OOM/);
      expect(failure.outcome).toBe('not-executed');
      await storeFailure(opened.locks.tryAcquire('order'), /OOM/);
      await feed(lab);
      expect(await lab.hold('order')).toBeNull();
      await worksAgain(opened, 'order');
      expectOneOutage(opened);
    },
  );

  it('still renews, releases and shows holds; a queued waiter gets the lock, a later caller the failure', async () => {
    await using lab = await Lab.start({ config: ['maxmemory-policy noeviction'] });
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG), lab.open({ commandTimeoutMs })];
    const [one, two] = [await holder.locks.acquire('one'), await holder.locks.acquire('two')];
    const waiting = waiter.locks.acquire('one', { waitMs: 20_000 });
    await lab.subscribed('one');
    await starve(lab);
    expect(await one.release()).toBe('released');
    const next = await waiting;
    // A wait queue stays for a second after a foreign caller got its lock: then there is room in it.
    await until(async () => (await lab.admin.exists(`nest_redis_lock:queue:{${holdName('one')}}`)) === 0);
    const late = await storeFailure(holder.locks.acquire('one', { waitMs: 20_000 }), /OOM/);
    expect(late.outcome).toBe('not-executed');
    expect(await next.release()).toBe('released');
    await two.extend(20_000);
    expect(await holder.locks.inspect('two')).toMatchObject({ holders: [{ count: 1 }] });
    expect(await holder.locks.forceUnlock('two')).toBe(true);
    await feed(lab);
    await worksAgain(waiter, 'one');
    expect(await two.release()).toBe('lost');
  });
});

describe('something of another type at the name of', () => {
  const wrongTypes: Record<string, (lab: Lab, name: string) => Promise<unknown>> = {
    'a string': (lab, name) => lab.admin.set(name, 'not ours'),
    'a list': (lab, name) => lab.admin.rpush(name, 'not ours'),
    'a set that expires': (lab, name) =>
      lab.admin.multi().sadd(name, 'not ours').pexpire(name, 60_000).exec(),
  };
  const onlyThisKey = async (opened: OpenLocks) => {
    // The store works: no event says otherwise, and every other key can be locked.
    await opened.locks.withLock('another', () => undefined);
    expect(opened.events('store-down')).toEqual([]);
  };

  it.each(Object.keys(wrongTypes))(
    'the lock (%s): a failure, never "taken"; it is left alone',
    async (type) => {
      await using lab = await Lab.start();
      const opened = lab.open({ commandTimeoutMs });
      const { locks } = opened;
      await wrongTypes[type]!(lab, holdName('order'));
      const before = await lab.admin.dump(holdName('order'));
      for (const request of [
        () => locks.acquire('order', { waitMs: 20_000 }),
        () => locks.tryAcquire('order'),
        () => locks.withLock('order', () => 'ran'),
        () => locks.withLock(['aaa', 'order'], () => 'ran'),
        () => locks.inspect('order'),
        () => locks.isLocked('order'),
        () => locks.forceUnlock('order'),
      ]) {
        expect((await storeFailure(request(), /WRONGTYPE/)).outcome).toBe('not-executed');
      }
      expect(await lab.admin.dump(holdName('order'))).toEqual(before);
      await onlyThisKey(opened);
      await lab.admin.del(holdName('order'));
      await locks.withLock('order', () => undefined);
      await lab.nothingLeft(opened);
    },
  );
});

describe('a server that has forgotten its scripts (SCRIPT FLUSH)', () => {
  it('between any two steps is not noticed: taking, waiting, renewing, looking, releasing', async () => {
    await using lab = await Lab.start();
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const key = 'order';
    const flush = () => lab.admin.script('FLUSH');
    await Promise.all([holder.locks.ping(), waiter.locks.ping()]);
    await flush();
    const lease = await holder.locks.acquire(key);
    await flush();
    const waiting = waiter.locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);
    await flush();
    await lease.extend(2_000);
    const { pexpire = 0 } = await lab.calls();
    await until(async () => (await lab.calls())['pexpire']! > pexpire, { what: 'a renewal' });
    await flush();
    expect(await holder.locks.inspect(key)).not.toBeNull();
    await flush();
    expect(await lease.release()).toBe('released');
    const next = await within(5_000, waiting);
    await flush();
    expect(await next.release()).toBe('released');
    expect([
      ...holder.events('lost'),
      ...holder.events('store-down'),
      ...waiter.events('store-down'),
    ]).toEqual([]);
    await lab.nothingLeft(holder, waiter);
  });
});
