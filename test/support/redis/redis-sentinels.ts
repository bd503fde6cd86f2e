import type { RedisOptions } from 'ioredis';
import { until } from '../async.js';
import { RedisServer } from '../redis-server.js';
import { inStep, REPLICATION, replicationOf, startReplica } from './redis-replicas.js';

const NAME = 'locks';
/** After how long without an answer a sentinel takes a server for dead, in ms. */
const DOWN_AFTER_MS = 500;
/** A sentinel looks at its servers only now and then, and waits before it tries a second promotion. */
const PROMOTION_MS = 60_000;

const sentinelOf = (master: RedisServer): Promise<RedisServer> =>
  RedisServer.start({
    sentinel: true,
    config: [
      `sentinel monitor ${NAME} ${master.host} ${master.port} 2`,
      `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${NAME} 5000`,
    ],
  });

/** A master, its replicas, and three sentinels that watch over them. */
export class RedisSentinels implements AsyncDisposable {
  private constructor(
    /** All servers that keep data; the first was the master at the start. */
    readonly servers: readonly RedisServer[],
    readonly sentinels: readonly RedisServer[],
  ) {}

  static async start(replicas = 1): Promise<RedisSentinels> {
    const servers: RedisServer[] = [];
    const sentinels: RedisServer[] = [];
    const all = new RedisSentinels(servers, sentinels);
    try {
      servers.push(await RedisServer.start({ config: REPLICATION }));
      for (let i = 0; i < replicas; i++) servers.push(await startReplica(servers[0]!));
      for (let i = 0; i < 3; i++) sentinels.push(await sentinelOf(servers[0]!));
      for (const sentinel of sentinels) {
        await until(() => all.knowsOthers(sentinel), {
          timeoutMs: PROMOTION_MS,
          what: 'the sentinels know each other',
        });
      }
      return all;
    } catch (error) {
      await all[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What an app gives as `redis`. */
  get options(): RedisOptions {
    return { sentinels: this.sentinels.map(({ host, port }) => ({ host, port })), name: NAME };
  }

  /** The server that most of the sentinels send clients to. */
  async master(): Promise<RedisServer> {
    return until(
      async () => {
        const named = await Promise.all(
          this.sentinels.map(
            async (one) => ((await one.cli('SENTINEL', 'get-master-addr-by-name', NAME)) as string[])[1],
          ),
        );
        return this.servers.find(
          ({ port }) => named.filter((name) => name === String(port)).length > this.sentinels.length / 2,
        );
      },
      { timeoutMs: PROMOTION_MS, what: 'the sentinels agree on a master' },
    );
  }

  /** Makes a replica the master, while the old one lives. Resolves when the new one takes writes and is known. */
  async promote(): Promise<RedisServer> {
    const before = await this.master();
    // Refused for a while after the last one, and while a sentinel has not heard of the replica for some time.
    await until(async () => (await this.sentinels[0]!.cli('SENTINEL', 'failover', NAME)) === 'OK', {
      timeoutMs: PROMOTION_MS,
      what: 'a sentinel begins a promotion',
    });
    return this.promoted(before);
  }

  /** Resolves with the new master, once it takes writes and the sentinels send clients there. */
  async promoted(before: RedisServer): Promise<RedisServer> {
    return until(
      async () => {
        const master = await this.master();
        return master !== before && (await replicationOf(master, 'role')) === 'master' ? master : undefined;
      },
      { timeoutMs: PROMOTION_MS, what: 'a replica has become the master' },
    );
  }

  /** Resolves once each replica has all that the master has. */
  async inStep(): Promise<void> {
    const master = await this.master();
    for (const server of this.servers) if (server !== master && server.isRunning) await inStep(server);
  }

  private async knowsOthers(sentinel: RedisServer): Promise<boolean> {
    const fields = (await sentinel.cli('SENTINEL', 'master', NAME)) as string[];
    const field = (name: string): number => Number(fields[fields.indexOf(name) + 1]);
    return (
      field('num-other-sentinels') === this.sentinels.length - 1 &&
      field('num-slaves') === this.servers.length - 1
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of [...this.sentinels, ...this.servers]) await one.stop();
  }
}
