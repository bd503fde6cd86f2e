import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { systemRuntime, type Runtime } from '../../lib/core/util/runtime.js';
import { RedisConnection } from '../../lib/stores/redis/connection/redis-connection.js';
import { ownClientOptions, resolveEndpoint } from '../../lib/stores/redis/connection/redis-settings.js';
import { RedisStore } from '../../lib/stores/redis/redis.store.js';
import { until } from '../support/async.js';
import { VirtualRuntime } from '../support/core/virtual-runtime.js';
import type { TcpProxy } from '../support/tcp-proxy.js';
import { newKey, useLab } from '../support/redis/lab.js';

/*
 * A device between the app and Redis (NAT, a load balancer) drops an idle connection silently. If the first lock finds
 * that out, it costs that lock the whole time-out.
 */
const COMMAND_TIMEOUT_MS = 300;
const PING_MS = 40;

const lab = useLab();

/** Counts the pings that pass the proxy. */
const countPings = (proxy: TcpProxy): (() => number) => {
  let pings = 0;
  proxy.onData((_connection, direction, chunk) => {
    if (direction === 'toServer') pings += chunk.toString().match(/\r\nping\r\n/gi)?.length ?? 0;
  });
  return () => pings;
};

/** A command connection that asks every few ms whether it still lives. */
const connect = (proxy: TcpProxy, runtime: Runtime = systemRuntime()): RedisConnection => {
  const client = new Redis({ host: proxy.host, port: proxy.port, ...ownClientOptions(COMMAND_TIMEOUT_MS) });
  const timeouts = { timeoutMs: COMMAND_TIMEOUT_MS, idlePingMs: PING_MS };
  const connection = new RedisConnection(client, { ...timeouts, runtime });
  lab.track({ [Symbol.asyncDispose]: async () => connection.close() });
  return connection;
};

/** The timers of the pings: the ones that are set and have neither fired nor been cleared. */
class PingTimers {
  readonly pending = new Set<unknown>();
  inForeground = 0;
  private readonly system = systemRuntime();
  readonly runtime: Runtime = {
    ...this.system,
    setTimer: (action, ms, background) => {
      if (ms !== PING_MS) return this.system.setTimer(action, ms, background);
      if (!background) this.inForeground += 1;
      const timer = this.system.setTimer(
        () => {
          this.pending.delete(timer);
          action();
        },
        ms,
        background,
      );
      this.pending.add(timer);
      return timer;
    },
    clearTimer: (timer) => {
      this.pending.delete(timer);
      this.system.clearTimer(timer);
    },
  };
}

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
    const timers = new PingTimers();
    const proxy = await lab.proxy();
    const connection = connect(proxy, timers.runtime);
    for (let i = 0; i < 5; i++) {
      await request(connection);
      expect(timers.pending.size).toBe(1);
      proxy.cut();
      await until(() => connection.current === undefined);
    }
    await request(connection);
    expect(timers.pending.size).toBe(1);
    connection.close();
    expect(timers.pending.size).toBe(0);
    expect(timers.inForeground).toBe(0);
  });

  it('of a store is asked every ten seconds', async () => {
    const proxy = await lab.proxy();
    const pings = countPings(proxy);
    const runtime = new VirtualRuntime();
    const store = new RedisStore({ redis: proxy.url, runtime });
    lab.track({ [Symbol.asyncDispose]: () => store.close() });
    await store.inspect(newKey());
    // The handshake asks once.
    expect(pings()).toBe(1);
    await runtime.pass(9_999);
    await store.inspect(newKey());
    expect(pings()).toBe(1);
    await runtime.pass(1);
    await until(() => pings() === 2);
    // Its reply comes after that of the ping, which would otherwise be overdue.
    await store.inspect(newKey());
    await runtime.pass(10_000);
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
