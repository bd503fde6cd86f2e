import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { LockStoreError } from 'nest-redis-lock';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GoRedsync, hasGo } from '../support/go-redsync.js';
import { openLocks, type OpenLocks } from '../support/redis/open-locks.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { Redisson } from '../support/redisson/redisson.js';

const LEASE_MS = 20_000;
const PEERS = new URL('../bench/peers/', import.meta.url);

/** Redlock as others run it. */
interface Other {
  /** Whether it got the lock. */
  lock(name: string): Promise<boolean>;
  unlock(name: string): Promise<unknown>;
}

/** The parts of node-redlock that are used here. */
interface NodeRedlock {
  acquire(names: readonly string[], ms: number): Promise<{ release(): Promise<unknown> }>;
}

let names = 0;
const newName = (): string => `order-${(names += 1)}`;

describe('a quorum beside Redlock as others run it, on the same servers', () => {
  let servers: RedisServer[];
  let opened: OpenLocks;
  const ends: (() => unknown)[] = [];
  const others: Record<string, Other> = {};

  beforeAll(async () => {
    servers = await Promise.all([0, 1, 2].map(() => RedisServer.start()));
    const urls = servers.map(({ url }) => url);
    opened = openLocks(urls, { keyPrefix: '', delayAfterRestartMs: 0, watchdogMs: LEASE_MS });

    const java = await Redisson.start(urls.join(','), { mode: 'each' });
    ends.push(() => java[Symbol.asyncDispose]());
    others['Redisson'] = {
      lock: (name) => java.send('tryLock', { name, kind: 'red', waitMs: 0, leaseMs: LEASE_MS }),
      unlock: (name) => java.send('unlock', { name, kind: 'red' }),
    };

    execFileSync(process.execPath, [fileURLToPath(new URL('install.mjs', PEERS))], { stdio: 'inherit' });
    const { default: Redlock } = createRequire(PEERS)('redlock') as {
      default: new (clients: Redis[], options: object) => NodeRedlock;
    };
    const clients = urls.map((url) => new Redis(url));
    ends.push(() => clients.forEach((client) => client.disconnect()));
    const redlock = new Redlock(clients, { retryCount: 0 });
    const held = new Map<string, { release(): Promise<unknown> }>();
    others['node-redlock'] = {
      lock: async (name) => {
        const lock = await redlock.acquire([name], LEASE_MS).catch(() => undefined);
        if (lock) held.set(name, lock);
        return lock !== undefined;
      },
      unlock: (name) => held.get(name)!.release(),
    };

    if (!hasGo()) return;
    const go = await GoRedsync.start(servers.map(({ host, port }) => `${host}:${port}`));
    ends.push(() => go[Symbol.asyncDispose]());
    others['redsync'] = { lock: (name) => go.lock(name, LEASE_MS), unlock: (name) => go.unlock(name) };
  }, 400_000);

  afterAll(async () => {
    for (const end of ends.splice(0)) await end();
    await opened.close();
    await Promise.all(servers.map((server) => server.stop()));
  });

  const cases = ['Redisson', 'node-redlock', ...(hasGo() ? ['redsync'] : [])];

  it.each(cases)('a lock held here is not granted to %s', async (other) => {
    const name = newName();
    const lease = await opened.locks.acquire(name);
    expect(await others[other]!.lock(name)).toBe(false);
    await lease.release();
    expect(await others[other]!.lock(name)).toBe(true);
    await others[other]!.unlock(name);
  });

  it.each(cases)('a lock that %s holds is not granted here', async (other) => {
    const name = newName();
    expect(await others[other]!.lock(name)).toBe(true);
    const refused = await opened.locks.tryAcquire(name).catch((failure: unknown) => failure);
    if (other === 'Redisson') {
      expect(refused).toBeNull();
    } else {
      // Another type of value has the name: the lock is not given, and the error says what is there.
      expect(refused).toBeInstanceOf(LockStoreError);
      expect((refused as Error).message).toMatch(/another type/);
    }
    await others[other]!.unlock(name);
    await (await opened.locks.acquire(name)).release();
  });

  it('a waiter is woken by Redisson, and not by the other libraries, which publish no release', async () => {
    const name = newName();
    await others['Redisson']!.lock(name);
    const waiting = opened.locks.acquire(name, { waitMs: LEASE_MS });
    const failed = waiting.catch((error: unknown) => error);
    await others['Redisson']!.unlock(name);
    expect(await failed).not.toBeInstanceOf(Error);
    await (await waiting).release();
  });
});
