import { Redis } from 'ioredis';
import type { Lease } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { channelOf, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

const CHANNEL = channelOf('order');
const MEGABYTE = 1024 * 1024;

failOnUnhandledRejections();
const lab = useLab();

/** How often the lock was asked for, as the server counted. */
const requestCount = async (): Promise<number> => (await lab.calls())['evalsha'] ?? 0;

/** A lock that is held, and callers of another process who wait for it. */
const queueUp = async (callers = 1) => {
  const [holder, waiter] = [lab.open(), lab.openTimeless()];
  // What each connection asks for itself when it opens does not count.
  await Promise.all([holder.locks.ping(), waiter.locks.ping()]);
  const before = await requestCount();
  const lease = await holder.locks.acquire('order');
  const waiting = Array.from({ length: callers }, () => waiter.locks.acquire('order', { waitMs: 25_000 }));
  // The first of them asks, listens, and asks again: from then on only messages count.
  await until(async () => (await requestCount()) - before === 3, {
    what: 'the first waiter waits for a message',
  });
  return { lease, holder, waiter, waiting };
};

/** No waiter has got the lock meanwhile. The waiters get it after the release, one after the other. */
const onlyTheReleaseCounts = async (
  lease: Lease,
  waiting: readonly Promise<Lease>[],
  services: readonly OpenLocks[],
): Promise<void> => {
  expect(services.flatMap(({ locks }) => locks.held())).toHaveLength(1);
  expect(lease.lost).toBe(false);
  expect(await lease.release()).toBe('released');
  for (const next of waiting) expect(await (await within(10_000, next)).release()).toBe('released');
  await lab.nothingLeft(...services);
};

const MESSAGES: Readonly<Record<string, string | Buffer>> = {
  nothing: '',
  'what a release says': '0',
  'what a Java service says to all': '1',
  'a number below zero': '-1',
  'a number beyond 64 bits': '9'.repeat(400),
  text: 'released',
  Lua: `return redis.call('flushall')`,
  'a message in a message': '*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\n0\r\n',
  'every byte there is': Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  'broken UTF-8': Buffer.from([0xc3, 0x28, 0xed, 0xa0, 0x80]),
  'eight megabytes': Buffer.alloc(8 * MEGABYTE, 0xff),
};

describe('a hostile message on the channel of a lock', () => {
  it.each(Object.entries(MESSAGES))('%s: a reason to look, and nothing more', async (_what, message) => {
    const { lease, holder, waiter, waiting } = await queueUp();
    const before = await requestCount();
    expect(await lab.admin.publish(CHANNEL, message)).toBe(1);
    // Long before the holder's first renewal, which would count as well.
    await until(async () => (await requestCount()) > before, {
      timeoutMs: 5_000,
      what: 'the waiter has looked',
    });
    await onlyTheReleaseCounts(lease, waiting, [holder, waiter]);
  });

  it('so large that Redis disconnects the subscriber: it subscribes again, and hears the release', async () => {
    const { lease, holder, waiter, waiting } = await queueUp();
    await lab.admin.publish(CHANNEL, Buffer.alloc(40 * MEGABYTE));
    await until(async () => lab.server.log.includes('overcoming of output buffer limits'));
    await lab.waiting('order');
    await onlyTheReleaseCounts(lease, waiting, [holder, waiter]);
  });
});

describe('a flood of messages', () => {
  const FLOOD = 20_000;

  /** Sends them as fast as Redis takes them. */
  const flood = async (): Promise<void> => {
    const pipeline = lab.admin.pipeline();
    for (let i = 0; i < FLOOD; i += 1) pipeline.publish(CHANNEL, String(i));
    await pipeline.exec();
  };

  it.each([1, 100])(
    'makes a process in which %d callers wait look one question at a time, and far less often than it is told to',
    async (callers) => {
      const { lease, holder, waiter, waiting } = await queueUp(callers);
      const before = await requestCount();
      await flood();
      // The message of the release comes behind all of these.
      await onlyTheReleaseCounts(lease, waiting, [holder, waiter]);
      expect((await requestCount()) - before).toBeLessThan(FLOOD / 10);
    },
  );

  it('on a channel that a process has left, or never listened to, costs it nothing', async () => {
    const { lease, holder, waiter, waiting } = await queueUp();
    await lease.release();
    await (await within(10_000, waiting[0]!)).release();
    await lab.nothingLeft(holder, waiter);
    const before = await requestCount();
    await flood();
    await waiter.locks.ping();
    expect(await requestCount()).toBe(before);
  });
});

describe('a stranger who listens on the channel of a lock', () => {
  it('looks like a waiter, and still keeps no caller from the lock', async () => {
    const stranger = new Redis(lab.server.url);
    try {
      await stranger.subscribe(CHANNEL);
      const services = [lab.open({ waitMs: 20_000 }), lab.open({ waitMs: 20_000 })];
      const sections = services.flatMap(({ locks }) =>
        Array.from({ length: 10 }, () => locks.withLock('order', () => 'ran')),
      );
      expect(await within(20_000, Promise.all(sections))).toHaveLength(20);
    } finally {
      stranger.disconnect();
    }
  });
});
