import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { until, within } from '../async.js';
import { listen } from '../loopback.js';
import { guardFolder } from '../process-guard.js';
import { ZooKeeperEnsemble } from './zookeeper-ensemble.js';
import { ZooKeeperServer } from './zookeeper-server.js';

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const int = (value: number): Buffer => {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
};
const bytes = (value: string | Buffer): Buffer => {
  const content = Buffer.from(value);
  return Buffer.concat([int(content.length), content]);
};
const frame = (...parts: readonly Buffer[]): Buffer => bytes(Buffer.concat(parts));

const SESSION_TIMEOUT_MS = 4_000;
const HELLO = frame(
  int(0),
  Buffer.alloc(8),
  int(SESSION_TIMEOUT_MS),
  Buffer.alloc(8),
  bytes(Buffer.alloc(16)),
);
const OPEN_TO_ALL = [int(1), int(31), bytes('world'), bytes('anyone')];

const CREATE = 1;
const CREATE_CONTAINER = 19;
const DELETE = 2;
const CONTAINER = 4;

/** Reads the next frame, without its length. */
const reply = async (socket: Socket): Promise<Buffer> =>
  within(
    10_000,
    (async () => {
      const length = () => (socket.read(4) as Buffer | null)?.readInt32BE();
      const size = await until(length, { what: 'the server replies' });
      return until(() => socket.read(size) as Buffer | null, { what: 'the reply is complete' });
    })(),
  );

/** Sends requests on a new session. Resolves with their error codes; 0 is success. */
const request = async (server: ZooKeeperServer, ...requests: readonly Buffer[][]): Promise<number[]> => {
  const socket = connect({ host: server.host, port: server.port });
  socket.on('readable', () => undefined);
  try {
    socket.write(HELLO);
    await reply(socket);
    const errors: number[] = [];
    for (const [i, parts] of requests.entries()) {
      socket.write(frame(int(i + 1), ...parts));
      errors.push((await reply(socket)).readInt32BE(12));
    }
    return errors;
  } finally {
    socket.destroy();
  }
};

const create = (path: string): Buffer[] => [int(CREATE), bytes(path), bytes('value'), ...OPEN_TO_ALL, int(0)];
const createContainer = (path: string): Buffer[] => [
  ...[int(CREATE_CONTAINER), bytes(path), bytes(''), ...OPEN_TO_ALL, int(CONTAINER)],
];
const remove = (path: string): Buffer[] => [int(DELETE), bytes(path), int(-1)];

const nodesOf = async (server: ZooKeeperServer): Promise<number> =>
  Number(/^Node count: (\d+)$/m.exec(await server.command('srvr'))?.[1]);

describe('ZooKeeperServer', () => {
  it('replies as soon as start() resolves, and leaves no process and no file after stop()', async () => {
    const root = await mkdtemp(join(tmpdir(), 'nest-redis-lock-zookeeper-spec-'));
    guardFolder(root);
    const server = await ZooKeeperServer.start({ root });
    expect(await server.command('ruok')).toBe('imok');
    expect(await server.mode()).toBe('standalone');
    expect(await server.command('srvr')).toMatch(/^Zookeeper version: 3\./);
    expect(await readdir(root)).toHaveLength(1);
    const { pid } = server;
    await server.stop();
    await server.stop();
    expect(isAlive(pid)).toBe(false);
    expect(await readdir(root)).toEqual([]);
    await expect(server.command('ruok')).rejects.toThrow('ECONNREFUSED');
    await rm(root, { recursive: true });
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'keeps its port and its data over %s and two restarts',
    async (signal) => {
      await using server = await ZooKeeperServer.start();
      const { address } = server;
      const before = await nodesOf(server);
      expect(await request(server, create('/a'), create('/a/b'))).toEqual([0, 0]);
      for (let restarts = 0; restarts < 2; restarts++) {
        await server.kill(signal);
        expect(server.isRunning).toBe(false);
        await server.restart();
      }
      expect([server.address, await nodesOf(server)]).toEqual([address, before + 2]);
    },
  );

  it('is paused between SIGSTOP and SIGCONT', async () => {
    await using server = await ZooKeeperServer.start();
    await server.kill('SIGSTOP');
    await until(async () => /^State:\s+T/m.test(await readFile(`/proc/${server.pid}/status`, 'utf8')), {
      what: 'the server is paused',
    });
    expect([server.isRunning, server.isPaused]).toEqual([true, true]);
    await expect(server.command('ruok', { timeoutMs: 100 })).rejects.toThrow(
      /ruok: no reply .* within 100 ms/,
    );
    await server.kill('SIGCONT');
    expect(await server.command('ruok')).toBe('imok');
  });

  it('removes empty containers at the interval that a test gives', async () => {
    await using server = await ZooKeeperServer.start({ containerCheckMs: 50 });
    const before = await nodesOf(server);
    // A container that never had a child stays.
    expect(await request(server, createContainer('/c'), create('/c/child'), remove('/c/child'))).toEqual([
      0, 0, 0,
    ]);
    await until(async () => (await nodesOf(server)) === before, { what: 'the container is removed' });
  });

  it('serves TLS beside its other port, with its certificate', async () => {
    await using server = await ZooKeeperServer.start({ tls: true });
    const options = { host: server.host, port: server.tlsPort! };
    const trusting = connectTls({ ...options, ca: server.certificate!.cert }).end('ruok');
    expect(await text(trusting)).toBe('imok');
    await expect(text(connectTls(options))).rejects.toThrow('self-signed certificate');
    expect(await server.command('ruok')).toBe('imok');
    await server.restart();
    expect(await text(connectTls({ ...options, ca: server.certificate!.cert }).end('ruok'))).toBe('imok');
  });

  it('takes settings and properties, and fails with the words of the server about a bad one', async () => {
    await using server = await ZooKeeperServer.start({
      settings: { tickTime: 300 },
      properties: { 'jute.maxbuffer': 4_096 },
    });
    expect(await server.command('envi')).toContain('user.dir=');
    await expect(ZooKeeperServer.start({ settings: { tickTime: 'x' } })).rejects.toThrow(
      /ended before.*"x"/s,
    );
  });

  it('does not take another program on its port for itself', async () => {
    await using server = await ZooKeeperServer.start();
    await server.kill('SIGKILL');
    const other = createServer((socket) => void socket.resume().end('imok'));
    await listen(other, server.port);
    await expect(server.restart()).rejects.toThrow(/ended before it was ready.*address already in use/is);
    await new Promise((resolve) => other.close(resolve));
    await server.restart();
    expect(await server.mode()).toBe('standalone');
  });
});

describe('ZooKeeperEnsemble', () => {
  it('elects another leader when its leader is killed, and keeps its data', async () => {
    await using ensemble = await ZooKeeperEnsemble.start();
    const { servers, addresses } = ensemble;
    expect(addresses).toBe(servers.map(({ port }) => `127.0.0.1:${port}`).join(','));
    const first = await ensemble.leader();
    const [follower] = await ensemble.followers();
    const before = await nodesOf(first);
    expect(await request(follower!, create('/a'))).toEqual([0]);

    await first.kill('SIGKILL');
    const second = await ensemble.leader();
    expect(second).not.toBe(first);
    await ensemble.ready();
    expect(await request(second, create('/b'))).toEqual([0]);

    await first.restart();
    await ensemble.ready();
    expect(await ensemble.followers()).toContain(first);
    await until(async () => (await nodesOf(first)) === before + 2, {
      what: 'the restarted server has all nodes',
    });
  });

  it('elects another leader when its leader is paused', async () => {
    await using ensemble = await ZooKeeperEnsemble.start();
    const first = await ensemble.leader();
    await first.kill('SIGSTOP');
    expect(await ensemble.leader()).not.toBe(first);
    await first.kill('SIGCONT');
    await ensemble.ready();
    expect(await ensemble.leader()).not.toBe(first);
  });

  it('serves no requests without a majority', async () => {
    const ensemble = await ZooKeeperEnsemble.start();
    const pids = ensemble.servers.map(({ pid }) => pid);
    const [left, ...others] = ensemble.servers;
    for (const server of others) await server.kill('SIGKILL');
    await until(async () => (await left!.mode()) === undefined, {
      what: 'the last server serves no requests',
    });
    await others[0]!.restart();
    await ensemble.ready();
    await ensemble.stop();
    expect(pids.filter(isAlive)).toEqual([]);
  });
});
