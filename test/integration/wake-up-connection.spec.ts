import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import type { ProxyConnection, TcpProxy } from '../support/tcp-proxy.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

/** Far less than the watchdog's lease, at whose end a waiter looks by itself. */
const SOON_MS = 8_000;

failOnUnhandledRejections();
const lab = useLab();

/** A service behind a proxy that waits for a held key and is subscribed. */
const waiting = async (key: string) => {
  const proxy = await lab.proxy();
  const holder = lab.open();
  const lease = await holder.locks.acquire(key);
  const waiter = lab.open({ waitMs: 60_000, commandTimeoutMs: 500 }, proxy.url);
  let requestCount = 0;
  proxy.onData((_connection, direction, chunk) => {
    if (direction === 'toServer' && /evalsha/i.test(chunk.toString()) && chunk.includes(holdName(key)))
      requestCount += 1;
  });
  const wait = waiter.locks.acquire(key);
  await lab.waiting(key);
  await until(() => requestCount >= 2, { what: 'it asks again now that it can hear' });
  await waiter.locks.ping();
  return { proxy, holder, lease, waiter, wait };
};

const subscriberOf = (proxy: TcpProxy): ProxyConnection => proxy.find('subscribe').at(-1)!;

/** For as long as Redis counts the old connection, too, a release seems to have others waiting, which keeps the queue. */
const oneListens = (key: string): Promise<unknown> =>
  until(async () => (await lab.listeners(key)) === 1, { what: 'only the new connection listens' });

const served = async (
  wait: Promise<{ release(): Promise<unknown> }>,
  ...services: OpenLocks[]
): Promise<void> => {
  const lease = await within(SOON_MS, wait, 'the waiter');
  await lease.release();
  await lab.nothingLeft(...services);
};

describe('the connection for wake-ups', () => {
  it.each([
    ['cut', async (proxy: TcpProxy) => subscriberOf(proxy).cut()],
    ['killed by the server', () => lab.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')],
  ])('%s alone: it is made again, and the next release wakes', async (_how, end) => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.openTimeless(proxy.url)];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const wait = waiter.locks.acquire(key, { waitMs: 25_000 });
    await lab.waiting(key);
    const before = subscriberOf(proxy);
    await end(proxy);
    await until(() => subscriberOf(proxy) && subscriberOf(proxy) !== before, { what: 'it subscribes again' });
    await oneListens(key);
    await lease.release();
    await served(wait, waiter);
  });

  it('lost: a release that was published meanwhile is found as soon as it is back', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.openTimeless(proxy.url)];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waiting = waiter.locks.acquire(key, { waitMs: 25_000 });
    await lab.waiting(key);
    proxy.refuse();
    for (const connection of proxy.find('subscribe')) connection.cut();
    await until(async () => (await lab.channels()).length === 0);
    await lease.release();
    await proxy.restore();
    await (await within(SOON_MS, waiting)).release();
  });

  it('cannot come back at all: a waiter retries by itself, every second or so', async () => {
    const key = newKey();
    const { proxy, lease, waiter, wait } = await waiting(key);
    proxy.refuse();
    subscriberOf(proxy).cut();
    await until(async () => (await lab.channels()).length === 0);
    await lease.release();
    await served(wait, waiter);
  });

  it('half-open, so that no error is reported: a ping finds it', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.openTimeless(proxy.url, { commandTimeoutMs: 500 })];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const wait = waiter.locks.acquire(key, { waitMs: 25_000 });
    await lab.waiting(key);
    const halfOpen = subscriberOf(proxy);
    halfOpen.blackhole();
    await lease.release();
    await until(() => subscriberOf(proxy) !== halfOpen, { what: 'it subscribes again' });
    // Redis hears of the end of the old connection only now; until then it counts as one that listens.
    halfOpen.restore();
    await oneListens(key);
    await served(wait, waiter);
  });

  it('answers no SUBSCRIBE: it is cut and tried again', async () => {
    const key = newKey();
    const proxy = await lab.proxy();
    const holder = lab.open();
    const lease = await holder.locks.acquire(key);
    const waiter = lab.open({ waitMs: 60_000, commandTimeoutMs: 400 }, proxy.url);
    await waiter.locks.ping();
    const stop = proxy.onData((connection, direction, chunk) => {
      if (direction !== 'toServer' || !/^\*\d+\r\n\$9\r\nsubscribe/i.test(chunk.toString())) return;
      stop();
      connection.blackhole();
    });
    const wait = waiter.locks.acquire(key);
    await lab.waiting(key);
    await lease.release();
    await served(wait, waiter);
  });

  it('goes up and down many times while ten keys are waited for: all are served', async () => {
    const proxy = await lab.proxy();
    const holder = lab.open();
    const waiter = lab.open({ waitMs: 60_000, commandTimeoutMs: 500 }, proxy.url);
    const keys = Array.from({ length: 10 }, () => newKey());
    const leases = await Promise.all(keys.map((key) => holder.locks.acquire(key)));
    const waits = keys.map((key) => waiter.locks.acquire(key));
    await Promise.all(keys.map((key) => lab.waiting(key)));
    for (const [i, lease] of leases.entries()) {
      subscriberOf(proxy)?.cut();
      await lease.release();
      const own = await within(SOON_MS, waits[i]!, `waiter ${i}`);
      await own.release();
    }
    await lab.nothingLeft(waiter, holder);
  });

  it('is pinged only while a caller waits', async () => {
    const countPings = (proxy: TcpProxy): (() => number) => {
      let pings = 0;
      proxy.onData((connection, direction, chunk) => {
        if (direction !== 'toServer' || connection !== subscriberOf(proxy)) return;
        if (chunk.toString().includes('ping')) pings += 1;
      });
      return () => pings;
    };
    const key = newKey();
    const [first, second] = [await waiting(key), await waiting(newKey())];
    const [pings, beats] = [countPings(first.proxy), countPings(second.proxy)];
    await until(() => pings() > 0, { what: 'a ping while somebody waits' });
    await first.lease.release();
    await (await within(SOON_MS, first.wait, 'the waiter')).release();
    const [before, since] = [pings(), beats()];
    // The other one goes on, and tells how much time has passed.
    await until(() => beats() >= since + 2, { what: 'pings of the one who still waits' });
    expect(pings()).toBe(before);
    await second.lease.release();
    await served(second.wait, first.waiter, second.waiter);
  });
});
