import { Redis } from 'ioredis';
import { afterEach, beforeAll } from 'vitest';
import type { Runtime } from '../../../lib/core/util/runtime.js';
import { ADMIN } from '../servers/redis-configuration.js';
import type { RedisServerOptions } from '../servers/redis-server.js';
import { RedisServer } from '../servers/redis-server.js';
import { until } from '../async.js';
import { TcpProxy } from '../tcp-proxy.js';
import { TestWorker } from '../worker.js';
import type { FromLockWorker, LockWorkerSetup, ToLockWorker } from './lock.worker.js';
import { ManualClock } from './manual-clock.js';
import { openLocks, type LocksOptions, type OpenLocks } from './open-locks.js';

const LOCK_WORKER = new URL('./lock.worker.ts', import.meta.url);
/** How long a process may take to start on a machine that has much else to do. */
export const BOOT_MS = 25_000;
const FENCE_KEYS = /^nest_redis_lock:fence:\{/;
/** A process that uses locks keeps a record of itself. */
const RECORDS = /^nest_redis_lock:process:\{/;
/** A process hears of its turns on one channel, from its first wait until it ends. */
const GRANT_CHANNELS = /^nest_redis_lock:grant:/;
/** On another one it is asked about its holds. */
const QUESTION_CHANNELS = /^nest_redis_lock:grant:asked:/;

/** The shortest watchdog there is: it renews every 333 ms. Commands may take nearly as long, on a busy machine. */
export const SHORT_WATCHDOG = { watchdogMs: 1_000, commandTimeoutMs: 900 } as const;

export type LockWorker = TestWorker<ToLockWorker, FromLockWorker>;

let keys = 0;

/** A key that no other test of this file uses. Later ones order after earlier ones. */
export const newKey = (name = 'key'): string => `${name}-${String((keys += 1)).padStart(4, '0')}`;

/** Where the hold of a key is with the default prefix. */
export const holdName = (key: string): string => `lock:${key}`;

/** Where the end of a hold is announced with the default prefix, for keys without braces. */
export const channelOf = (key: string): string => `redisson_lock__channel:{lock:${key}}`;

/** One Redis server with everything a scenario puts around it. What was opened through it ends with it. */
export class Lab implements AsyncDisposable {
  server!: RedisServer;
  /** A plain client for looking at the server and for playing foul. */
  admin!: Redis;
  private readonly opened: AsyncDisposable[] = [];

  /** A lab for one test: `await using lab = await Lab.start()`. */
  static async start(options?: RedisServerOptions): Promise<Lab> {
    const lab = new Lab();
    await lab.begin(options);
    return lab;
  }

  async begin(options?: RedisServerOptions): Promise<void> {
    this.server = await RedisServer.start(options);
    this.admin = new Redis({ ...this.server.clientOptions(), ...ADMIN });
    // A server that is down on purpose is no news.
    this.admin.on('error', () => undefined);
  }

  /** A lock service on this server, or on what is given. */
  open(
    options?: LocksOptions,
    redis: Parameters<typeof openLocks>[0] = this.server.url,
    runtime?: Runtime,
  ): OpenLocks {
    return this.track(openLocks(redis, options, runtime));
  }

  /**
   * A lock service for which time stands still: none of its timers ever fires. What its waiters do, they do because
   * something told them, never because they looked by themselves after a while.
   */
  openTimeless(redis?: Parameters<typeof openLocks>[0], options?: LocksOptions): OpenLocks {
    return this.open(options, redis, new ManualClock().runtime(`timeless-${(keys += 1)}`));
  }

  async proxy(): Promise<TcpProxy> {
    return this.track(await TcpProxy.start(this.server));
  }

  /** A lock service in a process of its own. Resolves once that has a connection. */
  async worker(setup: Partial<LockWorkerSetup> = {}): Promise<LockWorker> {
    const args = [JSON.stringify({ redis: this.server.url, ...setup } satisfies LockWorkerSetup)];
    const worker = this.track(TestWorker.start<ToLockWorker, FromLockWorker>(LOCK_WORKER, { args }));
    await worker.next('ready', { timeoutMs: BOOT_MS });
    return worker;
  }

  /** The owner and the time left of a key's hold; null when there is none. */
  async hold(key: string): Promise<{ owner: string; leftMs: number } | null> {
    const [owner] = await this.admin.hkeys(holdName(key));
    return owner === undefined ? null : { owner, leftMs: await this.admin.pttl(holdName(key)) };
  }

  /** How many processes listen for the end of the key's hold; one that waited before it got the lock still does. */
  async listeners(key: string): Promise<number> {
    const [, count] = (await this.admin.pubsub('NUMSUB', channelOf(key))) as [string, number];
    return count;
  }

  /** Puts another type of value where the key's wait queue belongs: locks do without a queue. */
  async withoutQueue(key: string): Promise<void> {
    await this.admin.set(`nest_redis_lock:queue:{${holdName(key)}}`, 'something else');
  }

  /** Resolves once so many processes listen for the end of the key's hold. */
  async waiting(key: string, processes = 1): Promise<void> {
    await until(async () => (await this.listeners(key)) >= processes, {
      what: `${processes} processes wait for ${key}`,
    });
  }

  /** Resolves once all who stand in line for the key hear it when it is their turn. */
  async subscribed(key: string, count = 1): Promise<void> {
    await until(
      async () => {
        const queue = await this.admin.hgetall(`nest_redis_lock:queue:{${holdName(key)}}`);
        return Object.values(queue).filter((text) => /^1( -?\d+){4} 0 /.test(text)).length >= count;
      },
      { what: `${count} hear of their turn for ${key}` },
    );
  }

  /** Every channel on which somebody waits. */
  async channels(): Promise<string[]> {
    return (await this.allChannels()).filter((name) => !GRANT_CHANNELS.test(name));
  }

  private async allChannels(): Promise<string[]> {
    return (await this.admin.pubsub('CHANNELS')) as string[];
  }

  /**
   * Resolves once holds have been renewed this often from now on, all of them counted together. Only what is still
   * held is renewed; nobody else may ask for a taken lock meanwhile.
   */
  async renewals(times: number): Promise<void> {
    // What is left of a hold is asked for by each renewal, whether it has to lengthen the hold or not.
    const renewed = async () => (await this.calls())['pttl'] ?? 0;
    const before = await renewed();
    await until(async () => (await renewed()) >= before + times, { what: `${times} renewals` });
  }

  /** Everything that locks left in Redis: holds, lines and subscriptions. Fence keys are few and stay on purpose. */
  async leftovers(): Promise<string[]> {
    const names = await this.admin.keys('*');
    return [
      ...names.filter((name) => !FENCE_KEYS.test(name) && !RECORDS.test(name)),
      ...(await this.channels()),
    ];
  }

  /** The channels on which processes hear of their turns. */
  async grantChannels(): Promise<string[]> {
    return (await this.allChannels()).filter(
      (name) => GRANT_CHANNELS.test(name) && !QUESTION_CHANNELS.test(name),
    );
  }

  /** Resolves once nothing is left in Redis, nor in the given services. */
  async nothingLeft(...services: readonly OpenLocks[]): Promise<void> {
    for (const { locks } of services) {
      await until(() => Object.values(locks.usage).every((size) => size === 0), {
        what: 'the service keeps nothing',
      });
    }
    await until(async () => (await this.leftovers()).length === 0, { what: 'Redis keeps nothing' });
  }

  /** How often each command was called since the server started or CONFIG RESETSTAT, commands in scripts included. */
  async calls(): Promise<Readonly<Record<string, number>>> {
    const stats = await this.admin.info('commandstats');
    const found = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)];
    return Object.fromEntries(found.map(([, name, calls]) => [name!, Number(calls)]));
  }

  /** Ends what the last test opened, newest first, and empties the server. */
  async reset(): Promise<void> {
    await this.closeAll();
    await this.server.cli('FLUSHALL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeAll();
    this.admin.disconnect();
    await this.server.stop();
  }

  private async closeAll(): Promise<void> {
    for (const one of this.opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }

  /** Ends `one` with the test. */
  track<T extends AsyncDisposable>(one: T): T {
    this.opened.push(one);
    return one;
  }
}

/** A lab for all tests of a file; each of them finds the server empty. */
export const useLab = (options?: RedisServerOptions): Lab => {
  const lab = new Lab();
  beforeAll(async () => {
    await lab.begin(options);
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());
  return lab;
};
