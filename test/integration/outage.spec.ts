import type { LockMode } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { Lab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import {
  COMMAND_TIMEOUT_MS as commandTimeoutMs,
  expectOneOutage,
  storeFailure,
} from '../support/redis/store-failures.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

const WAIT_MS = 25_000;

/** A way to wait for something that another process has. */
interface Waiting {
  /** Takes it, and returns what gives it back; that may take several tries after an outage. */
  take(holder: OpenLocks): Promise<() => Promise<unknown>>;
  wait(waiter: OpenLocks, waitMs: number, signal?: AbortSignal): Promise<unknown>;
}

const lock = (options: { mode?: LockMode }): Waiting => ({
  take: async ({ locks }) => {
    const lease = await locks.acquire('order', options);
    return () => lease.release();
  },
  wait: ({ locks }, waitMs, signal) => locks.acquire('order', { ...options, waitMs, signal }),
});

const KINDS: Readonly<Record<string, Waiting>> = {
  lock: lock({}),
  'fair lock': lock({ mode: 'fair' }),
  'write lock': lock({ mode: 'write' }),
  permit: {
    take: async ({ locks }) => {
      const lease = await locks.permits('order', { permits: 1 }).acquire();
      return () => lease.release();
    },
    wait: ({ locks }, waitMs, signal) => locks.permits('order', { permits: 1 }).acquire({ waitMs, signal }),
  },
  semaphore: {
    take: async ({ locks }) => {
      await locks.semaphore('order').trySetPermits(1);
      await locks.semaphore('order').acquire();
      return () => locks.semaphore('order').release();
    },
    wait: ({ locks }, waitMs, signal) => locks.semaphore('order').acquire(1, { waitMs, signal }),
  },
  latch: {
    take: async ({ locks }) => {
      await locks.countDownLatch('order').trySetCount(1);
      return () => locks.countDownLatch('order').countDown();
    },
    wait: ({ locks }, waitMs, signal) => locks.countDownLatch('order').wait({ waitMs, signal }),
  },
};

/** Resolves once a waiter listens, and nothing that it has asked is under way any more. */
const listening = async (lab: Lab, { locks }: OpenLocks): Promise<void> => {
  await until(async () => /\ss?sub=[1-9]/.test(String(await lab.admin.call('CLIENT', 'LIST'))), {
    what: 'somebody listens',
  });
  // The first reply comes behind what the message "subscribed" made it ask.
  await locks.ping();
  await locks.ping();
};

const stateOf = (promise: Promise<unknown>): Promise<string> =>
  Promise.race([
    promise.then(
      () => 'fulfilled',
      () => 'rejected',
    ),
    new Promise<string>((resolve) => setImmediate(resolve, 'pending')),
  ]);

/** A holder, and a caller that waits for it in another process. */
const begin = async (lab: Lab, kind: Waiting, waitMs = WAIT_MS, signal?: AbortSignal) => {
  const [holder, waiter] = [lab.open(), lab.open({ commandTimeoutMs })];
  const release = await kind.take(holder);
  const waiting = kind.wait(waiter, waitMs, signal);
  waiting.catch(() => undefined);
  await listening(lab, waiter);
  return { waiter, waiting, release: () => until(async () => (await release(), true)) };
};

const isDown = (waiter: OpenLocks): Promise<unknown> =>
  until(() => waiter.events('store-down').length > 0, { what: 'the outage is noticed' });

describe('a caller that waits in an outage', () => {
  it.each(Object.entries(KINDS))(
    'for a %s keeps waiting while the server is down; a new caller does not',
    async (_name, kind) => {
      await using lab = await Lab.start({ appendFsync: 'always' });
      const { waiter, waiting, release } = await begin(lab, kind);
      await lab.server.kill('SIGKILL');
      await isDown(waiter);
      await storeFailure(kind.wait(waiter, WAIT_MS), /ECONNREFUSED|connection/);
      expect(await stateOf(waiting)).toBe('pending');
      await lab.server.restart();
      await release();
      await waiting;
      await until(() => waiter.events('store-up').length > 0);
      expectOneOutage(waiter);
      expect(waiter.events('busy')).toEqual([]);
    },
  );

  it.each(Object.entries(KINDS))(
    'for a %s goes on waiting while the server refuses to write, as a demoted master does',
    async (_name, kind) => {
      await using lab = await Lab.start();
      const { waiter, waiting, release } = await begin(lab, kind);
      await lab.server.cli('REPLICAOF', '127.0.0.1', '1');
      // A caller of another key is rejected at once.
      await storeFailure(waiter.locks.acquire('other', { waitMs: WAIT_MS }), /READONLY|connection/);
      await isDown(waiter);
      // Semaphores and latches are only looked at by callers that have to wait, and that a replica answers.
      if (kind !== KINDS['semaphore'] && kind !== KINDS['latch']) {
        await storeFailure(kind.wait(waiter, WAIT_MS), /READONLY|connection/);
      }
      expect(await stateOf(waiting)).toBe('pending');
      await lab.server.cli('REPLICAOF', 'NO', 'ONE');
      await release();
      await waiting;
      expect(waiter.events('busy')).toEqual([]);
    },
  );

  it.each(Object.entries(KINDS))(
    'for a %s is told at the end of its wait for how long the store had failed',
    async (_name, kind) => {
      await using lab = await Lab.start();
      const { waiter, waiting } = await begin(lab, kind, 3_000);
      await lab.server.kill('SIGKILL');
      await expect(waiting).rejects.toMatchObject({
        code: 'LOCK_STORE_FAILED',
        retryable: true,
        message: expect.stringMatching(/after 3\d\d\d ms: .* The store has failed for \d+ ms/) as string,
      });
      expect(waiter.events('busy')).toEqual([]);
      expect(waiter.events('store-down')).toHaveLength(1);
    },
  );

  it('goes on waiting while the server hangs', async () => {
    await using lab = await Lab.start();
    const { waiter, waiting, release } = await begin(lab, KINDS['lock']!);
    await lab.server.kill('SIGSTOP');
    await isDown(waiter);
    await storeFailure(KINDS['lock']!.wait(waiter, WAIT_MS), /did not answer|no connection/);
    expect(await stateOf(waiting)).toBe('pending');
    await lab.server.kill('SIGCONT');
    await release();
    await waiting;
    expect(waiter.events('busy')).toEqual([]);
  });

  it('enqueues again behind a server that has lost its data', async () => {
    await using lab = await Lab.start();
    const { waiter, waiting } = await begin(lab, KINDS['lock']!);
    await lab.server.kill('SIGKILL');
    await isDown(waiter);
    await lab.server.restart({ keepData: false });
    // The lock of the holder is gone with the data.
    await waiting;
  });

  it('is rejected at once when the server wants a password that it does not have', async () => {
    await using lab = await Lab.start();
    const { waiter, waiting } = await begin(lab, KINDS['lock']!);
    await lab.server.cli('CONFIG', 'SET', 'requirepass', 'another');
    await lab.admin.call('CLIENT', 'KILL', 'USER', 'default');
    await storeFailure(waiting, /NOAUTH|WRONGPASS|NOPERM|ACL/);
    await lab.admin.call('CONFIG', 'SET', 'requirepass', '');
    await until(() => waiter.locks.withLock('other', () => true));
  });

  it.each([
    ['aborted', 'LOCK_ABORTED'],
    ['stopped', 'LOCK_SHUTDOWN'],
  ])('goes at once when it is %s', async (how, code) => {
    await using lab = await Lab.start();
    const controller = new AbortController();
    const { waiter, waiting } = await begin(lab, KINDS['lock']!, WAIT_MS, controller.signal);
    await lab.server.kill('SIGSTOP');
    await isDown(waiter);
    if (how === 'aborted') controller.abort();
    else void waiter.close();
    await expect(waiting).rejects.toMatchObject({ code });
    await lab.server.kill('SIGCONT');
  });

  it('shares a connection attempt with all who wait', async () => {
    await using lab = await Lab.start({ appendFsync: 'always' });
    await using proxy = await lab.proxy();
    const holder = lab.open();
    const waiter = lab.open({ commandTimeoutMs }, proxy.url);
    const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`);
    const leases = await Promise.all(keys.map((key) => holder.locks.acquire(key)));
    const waits = keys.map((key) => waiter.locks.acquire(key, { waitMs: WAIT_MS }));
    await listening(lab, waiter);
    await until(async () => (await lab.admin.keys('nest_redis_lock:queue:*')).length >= keys.length);
    await lab.server.cli('REPLICAOF', '127.0.0.1', '1');
    await isDown(waiter);
    const before = proxy.connectionCount;
    await lab.server.cli('REPLICAOF', 'NO', 'ONE');
    await Promise.all(leases.map((lease) => until(async () => (await lease.release()) === 'released')));
    await Promise.all(waits);
    expect(proxy.connectionCount - before).toBeLessThan(20);
    expect(waiter.events('store-down')).toHaveLength(1);
  });
});
