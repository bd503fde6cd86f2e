import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createLockService } from 'nest-redis-lock';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RedisSource } from '../../lib/entries/redis.js';
import { within } from '../support/async.js';
import { freePort, LOOPBACK } from '../support/loopback.js';
import { node } from '../support/package/command.js';
import { repository } from '../support/package/pack.js';
import { guardProcess } from '../support/process-guard.js';
import { openLocks, type OpenLocks } from '../support/redis/open-locks.js';
import { RedisClusterServers } from '../support/servers/redis-cluster.js';
import { RedisSentinels } from '../support/servers/redis-sentinels.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { MysqlLab } from '../support/mysql/mysql-lab.js';
import { PostgresLab } from '../support/postgres/postgres-lab.js';
import { ZooKeeperLab } from '../support/zookeeper/zookeeper-lab.js';
import { INSTALL_TIMEOUT_MS } from './support/consumer-app.js';

const COMMAND = join(repository, 'dist', 'esm', 'cli.js');
/** Two time-outs of an unreachable store, and the start of the process on a busy machine. */
const ENDS_WITHIN_MS = 25_000;
const PASSWORD = 's3cr3t@pass';
const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string };

/** Runs the built command as a shell does, without a terminal, until it ends by itself. */
const runIn = async (env: NodeJS.ProcessEnv, ...args: readonly string[]) => {
  const child = spawn(COMMAND, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  guardProcess(child);
  const [[exitCode], out, note] = await within(
    ENDS_WITHIN_MS,
    Promise.all([once(child, 'close') as Promise<[number | null]>, text(child.stdout), text(child.stderr)]),
    `the end of ${args[0]}`,
  );
  expect(out + note).not.toMatch(/s3cr3t|\n +at /);
  return { exitCode, out, note };
};
const run = (...args: readonly string[]) => runIn({}, ...args);
const runWith = (config: object, ...args: readonly string[]) =>
  runIn({ NEST_REDIS_LOCK_CONFIG: JSON.stringify(config) }, ...args);

describe('npx nest-redis-lock', () => {
  let redis: RedisServer;
  let apps: OpenLocks;
  const onRedis = (...args: readonly string[]) => runIn({ REDIS_URL: redis.url }, ...args);

  beforeAll(async () => {
    await node(['.ci/setup.mjs', '--build'], { cwd: repository, timeoutMs: 300_000 });
    redis = await RedisServer.start({ password: PASSWORD });
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => redis.stop());

  beforeEach(async () => {
    await redis.cli('FLUSHALL');
    apps = openLocks(redis.url, { shutdownGraceMs: 0 });
    return () => apps.close();
  });

  it('is executable, and shows its help and its version', async () => {
    await access(COMMAND, constants.X_OK);
    expect(await run('--help')).toMatchObject({
      exitCode: 0,
      note: '',
      out: expect.stringContaining('Usage:'),
    });
    expect(await run('--version')).toEqual({ exitCode: 0, note: '', out: `${version}\n` });
  });

  it('shows the holder and the queue of a key with who and queue, and that a key is free', async () => {
    const lease = await apps.locks.acquire('order:42', { mode: 'fair' });
    const waiting = apps.locks.acquire('order:42', { mode: 'fair', waitMs: 60_000 });
    await using other = openLocks(redis.url);
    const seen = async () => (await other.locks.inspect('order:42'))?.waitingProcesses;
    await expect.poll(seen, { timeout: 10_000 }).toMatchObject([{ pid: process.pid }]);
    expect(await onRedis('who', 'order:42')).toEqual({
      exitCode: 0,
      note: '',
      out: expect.stringMatching(
        new RegExp(
          `^KEY +KIND +OWNER +REMAINING.*\\norder:42 +fair +${lease.owner} +\\d\\d\\.\\d s.*\\n1 caller queued\\.\\n$`,
        ),
      ) as unknown,
    });
    const queue = await onRedis('queue', 'order:42');
    expect(queue.out).toMatch(
      new RegExp(
        `\\norder:42 +fair +holds +${lease.owner} .*\\norder:42 +1\\. +\\S+ +\\S+ +${process.pid} .*\\n$`,
      ),
    );
    expect(await onRedis('who', 'order:43')).toEqual({ exitCode: 1, note: '', out: 'order:43 is free.\n' });
    await lease.release();
    await (await waiting).release();
  });

  it('list shows the held keys, for programs too, and knows the prefix of the apps', async () => {
    await apps.locks.acquire('order:1');
    await apps.locks.acquire('user:1');
    const { exitCode, out } = await onRedis('list', 'order:', '--json');
    expect([exitCode, JSON.parse(out)]).toMatchObject([
      0,
      [{ key: 'order:1', kind: 'exclusive', waiting: [] }],
    ]);
    expect((await onRedis('list')).out).toMatch(/\norder:1 .*\nuser:1 .*\n2 keys held\.\n$/);
    expect((await onRedis('list', '--key-prefix', '')).out).toContain('lock:order:1');
    expect(await onRedis('list', 'none:')).toMatchObject({ exitCode: 1, out: 'No key is held.\n' });
  });

  it('shows a string of another library with who, and leaves it with unlock', async () => {
    await redis.cli('SET', 'lock:order:42', 'x', 'PX', '60000');
    expect(await onRedis('who', 'order:42')).toMatchObject({
      ...{ exitCode: 0, note: '', out: expect.stringMatching(/\norder:42 +string +5\d\.\d s\n/) as unknown },
    });
    expect(await onRedis('unlock', 'order:42', '--yes')).toMatchObject({
      ...{ exitCode: 1, out: expect.stringContaining('delete the string by hand') as unknown },
    });
    expect(await redis.cli('GET', 'lock:order:42')).toBe('x');
    expect(await onRedis('list')).toMatchObject({ exitCode: 1, out: 'No key is held.\n' });
  });

  it('unlock needs --yes without a terminal, and then ends the hold', async () => {
    await apps.locks.acquire('order:42');
    expect(await onRedis('unlock', 'order:42')).toMatchObject({
      ...{ exitCode: 2, out: '', note: expect.stringContaining('Pass --yes to agree') as unknown },
    });
    expect(await apps.locks.isLocked('order:42')).toBe(true);
    expect(await onRedis('unlock', 'order:42', '--yes')).toMatchObject({
      ...{ exitCode: 0, out: 'Ended 1 hold of order:42.\n' },
    });
    expect(await apps.locks.isLocked('order:42')).toBe(false);
    expect(await onRedis('unlock', 'order:42', '--yes')).toMatchObject({
      ...{ exitCode: 1, out: 'order:42 is free.\n' },
    });
  });

  it('fails when its result cannot be written', async () => {
    const lease = await apps.locks.acquire('order:1');
    const full = openSync('/dev/full', 'w');
    const env = { ...process.env, REDIS_URL: redis.url };
    const child = spawn(COMMAND, ['who', 'order:1'], { stdio: ['ignore', full, 'pipe'], env });
    closeSync(full);
    guardProcess(child);
    const [[exitCode], note] = await within(
      ENDS_WITHIN_MS,
      Promise.all([once(child, 'close'), text(child.stderr!)]),
      'the end of who',
    );
    expect([exitCode, note]).toEqual([3, expect.stringContaining('the result cannot be written (ENOSPC)')]);
    await lease.release();
  });

  it('never creates a key in Redis, and leaves no connection', async () => {
    const clients = async (): Promise<number> => String(await redis.cli('CLIENT', 'LIST')).split('\n').length;
    const [keys, before] = [await redis.cli('DBSIZE'), await clients()];
    for (const command of ['who', 'queue', 'list']) await onRedis(command, 'order:42');
    await onRedis('unlock', 'order:42', '--yes');
    expect([await redis.cli('DBSIZE'), await clients()]).toEqual([keys, before]);
  });

  it('tells a server that fails from a key that is free, and shows no password', async () => {
    const nowhere = `redis://:${encodeURIComponent(PASSWORD)}@${LOOPBACK}:${await freePort()}`;
    expect(await runIn({ REDIS_URL: nowhere }, 'who', 'order:42')).toMatchObject({
      ...{
        exitCode: 3,
        out: '',
        note: expect.stringMatching(/^nest-redis-lock: The lock store failed.*ECONNREFUSED/) as unknown,
      },
    });
    const wrong = `redis://:not-${encodeURIComponent(PASSWORD)}@${LOOPBACK}:${redis.port}`;
    expect(await runIn({ REDIS_URL: wrong }, 'who', 'order:42')).toMatchObject({
      ...{ exitCode: 3, out: '', note: expect.stringContaining('WRONGPASS') as unknown },
    });
    expect(await runIn({ REDIS_URL: `redis://:${PASSWORD}@host:port` }, 'who', 'order:42')).toMatchObject({
      ...{ exitCode: 2, out: '' },
    });
    expect(await run('who', 'order:42', '--redis', redis.url)).toMatchObject({
      ...{ exitCode: 2, out: '', note: expect.stringContaining('--redis has a password') as unknown },
    });
    expect(await run('who', 'order:42', `redis://:${PASSWORD}@host`)).toMatchObject({ exitCode: 2, out: '' });
  });

  /** Expects that the command shows a lock at this address, and a free key. */
  const expectShown = async (
    source: RedisSource,
    show: (...args: readonly string[]) => ReturnType<typeof run>,
  ): Promise<void> => {
    await using locks = await createLockService({ redis: source });
    await using lease = await locks.acquire('order:42');
    expect(await show('who', 'order:42')).toMatchObject({
      ...{ exitCode: 0, note: '', out: expect.stringContaining(lease.owner) as unknown },
    });
    expect(await show('list')).toMatchObject({ exitCode: 0, note: '' });
  };

  it('reaches a server with TLS and a password, which stand in a file and in the environment', async () => {
    const secure = await RedisServer.start({ password: PASSWORD, tls: true });
    const folder = mkdtempSync(join(tmpdir(), 'command-'));
    const { host, port } = secure;
    const tls = { ca: { file: 'ca.pem' }, servername: 'localhost' };
    const config = { redis: { host, port, password: { env: 'THE_PASSWORD' }, tls } };
    const path = join(folder, 'locks.json');
    try {
      writeFileSync(join(folder, 'ca.pem'), secure.certificate!.cert);
      writeFileSync(path, JSON.stringify(config));
      const source = { host, port, password: PASSWORD, tls: { ca: secure.certificate!.cert } };
      await expectShown(source, (...args) => runIn({ THE_PASSWORD: PASSWORD }, ...args, '--config', path));
      expect(await runIn({ THE_PASSWORD: `not-${PASSWORD}` }, 'list', '--config', path)).toMatchObject({
        ...{ exitCode: 3, note: expect.stringContaining('WRONGPASS') as unknown },
      });
      expect(await run('list', '--config', path)).toMatchObject({
        ...{ exitCode: 2, note: expect.stringContaining('THE_PASSWORD is not set') as unknown },
      });
    } finally {
      rmSync(folder, { recursive: true });
      await secure.stop();
    }
  });

  it('reaches a cluster with a password', async () => {
    await using servers = await RedisClusterServers.start({ replicas: false, password: PASSWORD });
    const redis = {
      cluster: servers.servers.map(({ host, port }) => `${host}:${port}`),
      password: PASSWORD,
    };
    await expectShown(redis, (...args) => runWith({ redis }, ...args));
  });

  it('reaches the master behind Sentinel', async () => {
    await using sentinels = await RedisSentinels.start({ replicas: 0 });
    const redis = sentinels.options;
    await expectShown(redis, (...args) => runWith({ redis }, ...args));
  });

  it.each([
    [
      'PostgreSQL',
      async () => PostgresLab.start(),
      (uri: string) => ({ postgres: { connectionString: uri } }),
    ],
    ['MySQL', async () => MysqlLab.start(), (uri: string) => ({ mysql: { uri } })],
  ] as const)('shows the holder of a key on %s', async (_, start, configOf) => {
    await using lab = await start();
    const config = configOf(lab.server.uri);
    const { locks } = lab.open();
    await using lease = await locks.acquire('order:42');
    expect(await runWith(config, 'who', 'order:42')).toMatchObject({
      ...{ exitCode: 0, note: '', out: expect.stringContaining(lease.owner) as unknown },
    });
    expect(await runWith(config, 'who', 'free')).toMatchObject({ exitCode: 1, note: '' });
  });

  it('shows the holder of a key with --zookeeper', async () => {
    await using lab = await ZooKeeperLab.start();
    const { locks } = lab.open();
    await using lease = await locks.acquire('order:42');
    expect(await run('who', 'order:42', '--zookeeper', lab.connect)).toMatchObject({
      ...{ exitCode: 0, note: '', out: expect.stringContaining(lease.owner) as unknown },
    });
    expect(await run('who', 'free', '--zookeeper', lab.connect)).toMatchObject({ exitCode: 1, note: '' });
  });
});
