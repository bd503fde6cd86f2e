import { claimFor } from '../../support/stores/harness.js';
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { until } from '../../support/async.js';
import { listenOnFreePort } from '../../support/loopback.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { TcpProxy, type ProxyConnection } from '../../support/tcp-proxy.js';

const TIMEOUT_MS = 200;

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

const fail = (cause: Error): never => {
  throw cause;
};

/** From now on the next `count` connections fall silent for good when their client asks whether Redis is ready. */
const silenceNext = (proxy: TcpProxy, count: number): Set<ProxyConnection> => {
  const silenced = new Set<ProxyConnection>();
  proxy.onData((connection, direction, chunk) => {
    const isRequest = direction === 'toServer' && /\binfo\b/i.test(chunk.toString('latin1'));
    if (!isRequest || silenced.has(connection) || silenced.size === count) return;
    silenced.add(connection);
    connection.blackhole();
  });
  return silenced;
};

/** Answers every command like a Redis that loads its data, until `isLoaded`. */
const loadingServer = (isLoaded: () => boolean, sockets: Set<Socket>) =>
  createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      for (const command of chunk
        .toString('latin1')
        .split(/^\*\d+\r\n/m)
        .slice(1)) {
        const info = `loading:${isLoaded() ? 0 : 1}\r\n`;
        const requestsInfo = /^\$4\r\ninfo\r\n/i.test(command);
        socket.write(requestsInfo ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n');
      }
    });
  });

describe('a connection that falls silent while it is being set up', () => {
  it('is given up, and the next one serves', async () => {
    await using proxy = await TcpProxy.start(server);
    const store = new RedisStore({ redis: proxy.url, commandTimeoutMs: TIMEOUT_MS });
    await store.ping();
    const silenced = silenceNext(proxy, 2);
    proxy.cut();
    await until(() => silenced.size === 2, { what: 'both connections of the store are silent' });

    await until(() => store.ping().then(() => true), { what: 'Redis answers again' });
    let wakeUps = 0;
    const watch = store.kinds.exclusive.watch(claimFor('order'), { notified: () => wakeUps++, failed: fail });
    await until(() => watch.live, { what: 'wake-ups arrive again' });
    expect(wakeUps).toBeGreaterThan(0);
    watch.close();
    await store.close();
  });

  it('is kept while Redis goes on answering that it still loads its data', async () => {
    const sockets = new Set<Socket>();
    const loadedAt = performance.now() + 8 * TIMEOUT_MS;
    const loading = loadingServer(() => performance.now() > loadedAt, sockets);
    const port = await listenOnFreePort(loading);
    const redis = { host: '127.0.0.1', port };
    // Longer than the pause between two questions of the client.
    const store = new RedisStore({ redis, commandTimeoutMs: 2 * TIMEOUT_MS });
    await until(() => store.ping().then(() => true), { what: 'Redis answers' });
    // The second connection opens with the first who waits.
    expect(sockets.size).toBe(1);
    await store.close();
    for (const socket of sockets) socket.destroy();
    loading.close();
  });
});
