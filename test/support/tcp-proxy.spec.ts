import { Redis, type RedisOptions } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until, within } from './async.js';
import { RedisServer } from './servers/redis-server.js';
import { TcpProxy } from './tcp-proxy.js';

describe('TcpProxy', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  const clients: Redis[] = [];

  // A client that does nothing by itself, so that each test sees the connection as it is.
  const connected = async (options: RedisOptions = {}) => {
    const client = new Redis(proxy.url, {
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      ...options,
    });
    client.on('error', () => undefined);
    clients.push(client);
    await client.connect();
    return client;
  };
  const state = (promise: Promise<unknown>) => {
    const seen = { settled: false };
    const note = () => {
      seen.settled = true;
    };
    promise.then(note, note);
    return seen;
  };

  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    proxy = await TcpProxy.start(server);
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    proxy.close();
    await server.cli('FLUSHALL');
  });

  it('passes everything on, large values in both directions included', async () => {
    const client = await connected();
    const large = 'x'.repeat(3_000_000);
    await client.set('large', large);
    expect((await client.get('large')) === large).toBe(true);
    expect(proxy.connections).toHaveLength(1);
  });

  it('delays each direction by what was asked for', async () => {
    const client = await connected();
    proxy.delay(40);
    const started = performance.now();
    await client.ping();
    expect(performance.now() - started).toBeGreaterThanOrEqual(79);
    proxy.delay(0);
  });

  it('cuts: both ends see the end of the connection at once', async () => {
    const client = await connected();
    const pending = client.blpop('never', 0);
    await until(async () => (await server.text('CLIENT', 'LIST')).includes('cmd=blpop'));
    proxy.cut();
    await expect(within(2_000, pending)).rejects.toThrow();
    await until(async () => !(await server.text('CLIENT', 'LIST')).includes('cmd=blpop'));
    await until(() => proxy.connections.length === 0);
  });

  it('blackholes: nothing arrives, nobody is told, and after restore() it arrives late', async () => {
    const client = await connected();
    proxy.blackhole();
    const reply = client.set('a', '1');
    const { settled } = state(reply);
    // A second client on a way around the proxy proves that the server was free to answer all the time.
    expect(await server.cli('GET', 'a')).toBeNull();
    expect(settled).toBe(false);
    expect(client.status).toBe('ready');
    await proxy.restore();
    expect(await within(2_000, reply)).toBe('OK');
    expect(await server.cli('GET', 'a')).toBe('1');
  });

  it('blackholes: a client that leaves is not noticed by the server until restore()', async () => {
    const client = await connected({ connectionName: 'leaver', disconnectTimeout: 20 });
    const isThere = async () => (await server.text('CLIENT', 'LIST')).includes('name=leaver');
    expect(await isThere()).toBe(true);
    proxy.blackhole();
    const closed = new Promise((resolve) => client.once('end', resolve));
    client.disconnect();
    await closed;
    expect(await isThere()).toBe(true);
    await proxy.restore();
    await until(async () => !(await isThere()));
  });

  it('blackholes one connection and leaves the others alone', async () => {
    const subscriber = await connected();
    const client = await connected();
    const messages: string[] = [];
    subscriber.on('message', (_channel, message) => void messages.push(message));
    await subscriber.subscribe('news');
    const [link, ...more] = proxy.find('subscribe');
    expect(more).toEqual([]);
    link?.blackhole(['toClient']);
    await client.publish('news', 'late');
    expect(await client.ping()).toBe('PONG');
    expect(messages).toEqual([]);
    link?.restore();
    await until(() => messages.length === 1);
  });

  it('swallows replies: the command is done, its reply never comes, and restore() cuts', async () => {
    const client = await connected();
    proxy.swallowReplies();
    const reply = client.incr('n');
    const seen = state(reply);
    await until(async () => (await server.cli('GET', 'n')) === '1');
    expect(seen.settled).toBe(false);
    await proxy.restore();
    await expect(within(2_000, reply)).rejects.toThrow();
    expect(await server.cli('GET', 'n')).toBe('1');
  });

  it('lets a listener lose the reply of exactly one command', async () => {
    const client = await connected();
    proxy.onData((connection, direction, chunk) => {
      if (direction === 'toServer' && chunk.includes('incr')) connection.swallowReplies();
    });
    expect(await client.set('n', '5')).toBe('OK');
    const seen = state(client.incr('n'));
    await until(async () => (await server.cli('GET', 'n')) === '6');
    expect(seen.settled).toBe(false);
  });

  it('refuses new connections while open ones go on, and accepts them again on the same port', async () => {
    const client = await connected();
    const { port } = proxy;
    proxy.refuse();
    await expect(connected()).rejects.toThrow();
    expect(await client.ping()).toBe('PONG');
    await proxy.restore();
    expect(await (await connected()).ping()).toBe('PONG');
    expect(proxy.port).toBe(port);
  });

  it('shows clients a server that is down as a closed connection', async () => {
    await using gone = await RedisServer.start();
    await using broken = await TcpProxy.start(gone);
    await gone.kill('SIGKILL');
    const client = new Redis(broken.url, {
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
    });
    client.on('error', () => undefined);
    await expect(within(2_000, client.connect())).rejects.toThrow();
  });
});
