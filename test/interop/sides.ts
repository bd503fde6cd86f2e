import type { Redis } from 'ioredis';
import type { RedisClusterOptions } from '../../lib/stores/redis/cluster/cluster-settings.js';
import { openLocks, type LocksOptions, type OpenLocks } from '../support/redis/open-locks.js';
import { until } from '../support/async.js';
import { RedisClusterServers } from '../support/servers/redis-cluster.js';
import { OLDER_REDISSON } from '../support/redisson/redisson-build.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { TestWorker } from '../support/worker.js';
import { clientOf } from './client-of.js';
import { SERVERS } from './extent.js';
import type { Contend, ContenderSetup, FromContender, ToContender } from './contender.worker.js';
import type { Had } from '../support/java/contest.js';
import { Redisson, type RedissonOptions } from '../support/redisson/redisson.js';

const CONTENDER = new URL('./contender.worker.ts', import.meta.url);
const BOOT_MS = 25_000;
/** About one start in three shards messages, so one of this many is of either mode. */
const MAX_TRIES = 30;
const COMPLAINT = / (WARN|ERROR) /;

export type Contender = TestWorker<ToContender, FromContender>;

/** Redis, as one server or as a cluster, and processes of Java and of Node around it. What was started through it ends with it. A warning or an error in the log of a Redisson fails that end. */
export class Sides implements AsyncDisposable {
  private readonly started: AsyncDisposable[] = [];
  private readonly redissons: Redisson[] = [];

  /** In a cluster: whether messages are sharded; undefined leaves that to both sides. */
  private isSharded: boolean | undefined;

  private constructor(
    private readonly servers: readonly RedisServer[],
    private readonly isCluster: boolean,
  ) {
    this.isSharded = SERVERS === 'cluster-unsharded' ? false : undefined;
  }

  static async start(): Promise<Sides> {
    if (SERVERS === 'one') {
      const server = await RedisServer.start();
      const sides = new Sides([server], false);
      sides.started.push(server);
      return sides;
    }
    const cluster = await RedisClusterServers.start({ replicas: false });
    const sides = new Sides(cluster.servers, true);
    sides.started.push(cluster);
    return sides;
  }

  async java(options: RedissonOptions = {}): Promise<Redisson> {
    const java = await this.ofOneMode(options);
    this.started.push(java);
    this.redissons.push(java);
    return java;
  }

  /** Whether an older Redisson shards messages is chance: it is started until it does as those before it and this side do. */
  private async ofOneMode(options: RedissonOptions): Promise<Redisson> {
    const mode = this.isCluster ? (SERVERS as 'cluster' | 'cluster-unsharded') : 'one';
    const urls = this.servers.map(({ url }) => url).join(',');
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const java = await Redisson.start(urls, { ...options, mode });
      if (!this.isCluster || options.version !== OLDER_REDISSON) return java;
      const isSharded = await this.shards(java);
      this.isSharded ??= isSharded;
      if (isSharded === this.isSharded) return java;
      await java[Symbol.asyncDispose]();
    }
    throw new Error(`of ${MAX_TRIES} Redissons none did as the others; sharded: ${this.isSharded}`);
  }

  /**
   * Whether an older Redisson shards messages in a cluster. It finds out with an SPUBLISH to a server that need not have the
   * slot. Which it is shows where a thread listens that waits for another one.
   */
  private async shards(java: Redisson): Promise<boolean> {
    const name = 'is-sharded';
    const channel = `redisson_lock__channel:{${name}}`;
    await java.send('lock', { name, thread: 'first' });
    const waiting = java.send('lock', { name, thread: 'second' });
    const reply = await until(
      async () => {
        if ((await this.listenersBy('SHARDNUMSUB', channel)) > 0) return 'sharded';
        return (await this.listenersBy('NUMSUB', channel)) > 0 && 'in all of the cluster';
      },
      { what: 'a thread of Java listens' },
    );
    await java.send('unlock', { name, thread: 'first' });
    await waiting;
    await java.send('unlock', { name, thread: 'second' });
    return reply === 'sharded';
  }

  async node(options?: ContenderSetup['options']): Promise<Contender> {
    const setup: ContenderSetup = { redis: this.redis, options: this.withMode(options) };
    const worker = TestWorker.start<ToContender, FromContender>(CONTENDER, { args: [JSON.stringify(setup)] });
    this.started.push(worker);
    await worker.next('ready', { timeoutMs: BOOT_MS });
    return worker;
  }

  /** A lock service of this process, to be closed by the test. */
  open(options?: LocksOptions): OpenLocks {
    return openLocks(this.redis, this.withMode(options));
  }

  /** A client that looks at the keys, to be ended by the test. */
  admin(): Redis {
    return clientOf(this.redis);
  }

  /** Whether messages go to the server of their slot only. */
  get shardsMessages(): boolean {
    return this.isCluster && this.isSharded !== false;
  }

  /** Whether those who wait here stand in a line in Redis. */
  get hasQueue(): boolean {
    return !this.isCluster || this.shardsMessages;
  }

  /** How many connections listen to a channel. */
  listeners(channel: string): Promise<number> {
    return this.listenersBy(this.shardsMessages ? 'SHARDNUMSUB' : 'NUMSUB', channel);
  }

  private async listenersBy(command: 'NUMSUB' | 'SHARDNUMSUB', channel: string): Promise<number> {
    const counts = await Promise.all(
      this.servers.map(async (server) => {
        const [, count] = (await server.cli('PUBSUB', command, channel)) as [string, number];
        return count;
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** How many of these keys exist, whichever slots they are in. */
  async exists(...names: readonly string[]): Promise<number> {
    const { servers } = this;
    const found = await Promise.all(
      names.map(async (name) => {
        for (const server of servers) {
          const there = await server.cli('EXISTS', name).catch(() => 0);
          if (there === 1) return 1;
        }
        return 0;
      }),
    );
    return found.reduce<number>((sum, one) => sum + one, 0);
  }

  private get redis(): string | RedisClusterOptions {
    const [first] = this.servers;
    return this.isCluster ? { cluster: this.servers.map(({ url }) => url) } : first!.url;
  }

  private withMode(options?: LocksOptions): LocksOptions | undefined {
    return this.isSharded === undefined ? options : { ...options, shardedPubSub: this.isSharded };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.started.splice(0).reverse()) await one[Symbol.asyncDispose]();
    for (const { log } of this.redissons.splice(0)) {
      if (COMPLAINT.test(log)) throw new Error(`Redisson complains of us:\n${log}`);
    }
  }
}

/** How long after its end the last callers of a contest may still be waiting for each other. */
const DRAIN_MS = 20_000;

/** Contends with `callers` callers in all, the same number in each process. */
export const nodeContends = async (
  processes: readonly Contender[],
  { callers, ...how }: Contend,
): Promise<readonly Had[]> => {
  for (const one of processes) one.send({ type: 'contend', callers: callers / processes.length, ...how });
  const each = await Promise.all(
    processes.map((one) => one.next('contended', { timeoutMs: how.forMs + DRAIN_MS })),
  );
  return each.flatMap(({ had }) => had);
};

export const javaContends = (java: Redisson, { key, callers, workMs, forMs }: Contend) =>
  java.send('contend', { name: key, threads: callers, workMs, forMs });

export const servedTo = (had: readonly Had[]): number => had.reduce((sum, { served }) => sum + served, 0);

export const unserved = (had: readonly Had[]): number => had.filter(({ served }) => served === 0).length;
