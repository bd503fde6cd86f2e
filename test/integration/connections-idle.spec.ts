import { Redis } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RedisConnection } from '../../lib/stores/redis/connection/redis-connection.js';
import { ownClientOptions, resolveEndpoint } from '../../lib/stores/redis/connection/redis-settings.js';
import { until } from '../support/async.js';
import type { TcpProxy } from '../support/tcp-proxy.js';
import { newKey, useLab } from '../support/redis/lab.js';

/*
 * A device between the app and Redis (NAT, a load balancer) drops an idle connection silently. If the first lock finds
 * that out, it costs that lock the whole time-out.
 */
const COMMAND_TIMEOUT_MS = 300;
const PING_MS = 40;

const lab = useLab();
afterEach(() => {
  vi.useRealTimers();
});

/** Counts the pings that pass the proxy. */
const countPings = (proxy: TcpProxy): (() => number) => {
  let pings = 0;
  proxy.onData((_connection, direction, chunk) => {
    if (direction === 'toServer') pings += chunk.toString().match(/\r\nping\r\n/gi)?.length ?? 0;
  });
  return () => pings;
};

/** A command connection that asks every few ms whether it still lives. */
const connect = (proxy: TcpProxy): RedisConnection => {
  const client = new Redis({ host: proxy.host, port: proxy.port, ...ownClientOptions(COMMAND_TIMEOUT_MS) });
  const connection = new RedisConnection(client, { timeoutMs: COMMAND_TIMEOUT_MS, idlePingMs: PING_MS });
  lab.track({ [Symbol.asyncDispose]: async () => connection.close() });
  return connection;
};

const request = (connection: RedisConnection): Promise<unknown> =>
  connection.send({ command: 'exists', args: ['k'], read: (reply) => reply });

describe('a command connection on which nothing happens', () => {
  it('and which was dropped without a word is found before the next command, which then does not wait', async () => {
    const proxy = await lab.proxy();
    const connection = connect(proxy);
    await request(connection);
    const [forgotten] = proxy.connections;
    const before = connection.current;
    forgotten!.blackhole();
    await until(() => connection.current !== undefined && connection.current !== before, {
      what: 'a new connection, although nobody asked for one',
    });
    const startedAt = performance.now();
    expect(await request(connection)).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(COMMAND_TIMEOUT_MS);
  });

  it('and which lives stays the same one', async () => {
    const proxy = await lab.proxy();
    const pings = countPings(proxy);
    const connection = connect(proxy);
    await request(connection);
    const before = connection.current;
    await until(() => pings() >= 5);
    expect(connection.current).toBe(before);
    expect(proxy.connectionCount).toBe(1);
  });

  it('is asked by one timer, also after reconnects, and by none once it is closed', async () => {
    const set = vi.spyOn(globalThis, 'setInterval');
    const cleared = vi.spyOn(globalThis, 'clearInterval');
    try {
      const proxy = await lab.proxy();
      const connection = connect(proxy);
      for (let i = 0; i < 5; i++) {
        await request(connection);
        proxy.cut();
        await until(() => connection.current === undefined);
      }
      await request(connection);
      connection.close();
      const timers = set.mock.results.map(({ value }) => value as NodeJS.Timeout);
      expect(timers.length).toBeGreaterThanOrEqual(6);
      expect(timers.map((timer) => timer.hasRef())).not.toContain(true);
      expect(cleared.mock.calls.map(([timer]) => timer)).toEqual(expect.arrayContaining(timers));
    } finally {
      set.mockRestore();
      cleared.mockRestore();
    }
  });

  it('of a store is asked every ten seconds', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const proxy = await lab.proxy();
    const pings = countPings(proxy);
    const { locks } = lab.open({}, proxy.url);
    await locks.withLock(newKey(), () => undefined);
    // The handshake asks once.
    expect(pings()).toBe(1);
    vi.advanceTimersByTime(9_999);
    await locks.withLock(newKey(), () => undefined);
    expect(pings()).toBe(1);
    vi.advanceTimersByTime(1);
    await until(() => pings() === 2);
    vi.advanceTimersByTime(10_000);
    await until(() => pings() === 3);
  });
});

describe('keepAlive', () => {
  it.each([
    [undefined, 10_000],
    [2_500, 2_500],
    [0, 0],
  ])('%s in the options is %i ms on both connections', (given, used) => {
    const options = { ...lab.server.clientOptions(), ...(given !== undefined && { keepAlive: given }) };
    const endpoint = resolveEndpoint(options, COMMAND_TIMEOUT_MS);
    for (const role of ['commands', 'subscriber'] as const) {
      expect(endpoint.createClient(role).options).toMatchObject({ keepAlive: used });
    }
  });
});
