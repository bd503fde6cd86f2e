import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { until } from '../async.js';
import { RedisServer } from './redis-server.js';

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('RedisServer', () => {
  it('answers on its own port as soon as start() resolves, and is gone after stop()', async () => {
    const server = await RedisServer.start();
    expect(await server.cli('PING')).toBe('PONG');
    const { pid } = server;
    await server.stop();
    expect(isAlive(pid)).toBe(false);
    await expect(server.cli('PING')).rejects.toThrow('PING');
  });

  it('starts many at once, each on a port of its own', async () => {
    const servers = await Promise.all(Array.from({ length: 5 }, () => RedisServer.start()));
    expect(new Set(servers.map(({ port }) => port)).size).toBe(5);
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('keeps its data over SIGKILL and restart with an append-only file, and loses it when told to', async () => {
    await using server = await RedisServer.start({ appendFsync: 'always' });
    const { port, pid } = server;
    await server.cli('SET', 'a', '1');
    await server.kill('SIGKILL');
    expect(server.isRunning).toBe(false);
    await server.restart();
    expect([server.port, await server.cli('GET', 'a')]).toEqual([port, '1']);
    expect(server.pid).not.toBe(pid);
    await server.restart({ keepData: false });
    expect(await server.cli('GET', 'a')).toBeNull();
  });

  it('keeps its data over a restart without an append-only file, and loses it when killed', async () => {
    await using server = await RedisServer.start();
    await server.cli('SET', 'a', '1');
    await server.restart();
    expect(await server.cli('GET', 'a')).toBe('1');
    await server.cli('SET', 'b', '1');
    await server.kill('SIGKILL');
    await server.restart();
    expect(await server.cli('GET', 'b')).toBeNull();
  });

  it('stands still between SIGSTOP and SIGCONT', async () => {
    await using server = await RedisServer.start();
    await server.kill('SIGSTOP');
    let replied = false;
    const reply = server.cli('PING').then((pong) => {
      replied = true;
      return pong;
    });
    await until(async () => /^State:\s+T/m.test(await readFile(`/proc/${server.pid}/status`, 'utf8')), {
      what: 'the server is stopped',
    });
    expect(replied).toBe(false);
    await server.kill('SIGCONT');
    expect(await reply).toBe('PONG');
  });

  it('speaks TLS only to those who trust its certificate', async () => {
    await using server = await RedisServer.start({ tls: true });
    expect(server.url).toMatch(/^rediss:/);
    expect(await server.cli('PING')).toBe('PONG');
    const client = new Redis(server.url, { lazyConnect: true, retryStrategy: () => null });
    const errors: string[] = [];
    client.on('error', (error) => void errors.push(error.message));
    await expect(client.connect()).rejects.toThrow();
    expect(errors.join()).toMatch(/self-signed/);
  });

  it('binds users to their rules, but not the administrator behind cli()', async () => {
    await using server = await RedisServer.start({
      password: 'default secret',
      users: ['app on >app ~lock:* +get +set +auth +hello +client +info', 'default off'],
    });
    await server.cli('SET', 'other', '1');
    const client = new Redis({ ...server.clientOptions(), username: 'app', password: 'app' });
    await client.set('lock:a', '1');
    await expect(client.get('other')).rejects.toThrow('NOPERM');
    client.disconnect();
  });

  it('takes lines of configuration, and says what the server says about a bad one', async () => {
    await using server = await RedisServer.start({
      config: ['maxmemory 3mb', 'maxmemory-policy noeviction'],
    });
    expect(await server.cli('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', '3145728']);
    await expect(RedisServer.start({ config: ['no-such-option 1'] })).rejects.toThrow(/no-such-option/);
  });

  it('dies with the process that started it, even when that is killed', async () => {
    const script = fileURLToPath(new URL('../fixtures/start-redis.ts', import.meta.url));
    const loader = new URL('../typescript/register.mjs', import.meta.url).href;
    const parent = spawn(process.execPath, ['--import', loader, script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const line = await Promise.race([
      new Promise<string>((resolve) => createInterface(parent.stdout).once('line', resolve)),
      once(parent, 'exit').then(() => {
        throw new Error('the fixture ended before it said its pid');
      }),
    ]);
    const [pid = 0, folder = ''] = JSON.parse(line) as [number, string];
    expect([isAlive(pid), existsSync(folder)]).toEqual([true, true]);
    parent.kill('SIGKILL');
    await until(() => !isAlive(pid), { what: 'the server has ended' });
    await until(() => !existsSync(folder), { what: "the server's files are gone" });
  });
});
