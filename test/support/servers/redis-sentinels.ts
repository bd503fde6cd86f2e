import type { RedisOptions } from 'ioredis';
import { until } from '../async.js';
import { RedisServer } from './redis-server.js';
import { LOOPBACK } from '../loopback.js';
import type { Doorway } from './redis-cluster.js';
import type { Equipment } from './server-process.js';
import { inStep, REPLICATION, replicationOf, startReplicaWith } from './redis-replicas.js';

const NAME = 'locks';
/** After how long without an answer a sentinel takes a server for dead, in ms. */
const DOWN_AFTER_MS = 500;
/** A sentinel looks at its servers only now and then, and waits before it tries a second promotion. */
const PROMOTION_MS = 60_000;
/** How long a promotion takes that comes to an end. */
const ONE_PROMOTION_MS = 10_000;

/** Where a server is for the others. */
interface Place {
  readonly host: string;
  readonly port: number;
}

export interface SentinelTraits {
  readonly replicas?: number;
  /** After how long a promotion that makes no progress is given up; a second one waits for twice as long. Default: 5,000. */
  readonly failoverTimeoutMs?: number;
  /** One for each server, when something is between them; the master's is the first. Default: nothing is. */
  readonly doorways?: readonly Doorway[];
  /** One for each server; the master's is the first. */
  readonly equipments?: readonly Equipment[];
}

const sentinelOf = (master: Place, failoverTimeoutMs: number): Promise<RedisServer> =>
  RedisServer.start({
    sentinel: true,
    config: [
      `sentinel monitor ${NAME} ${master.host} ${master.port} 2`,
      `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${NAME} ${failoverTimeoutMs}`,
    ],
  });

const announced = (doorway: Doorway | undefined): readonly string[] =>
  doorway ? [`replica-announce-ip ${LOOPBACK}`, `replica-announce-port ${doorway.port}`] : [];

/** A master, its replicas, and three sentinels that watch over them. */
export class RedisSentinels implements AsyncDisposable {
  private constructor(
    /** All servers that keep data; the first was the master at the start. */
    readonly servers: readonly RedisServer[],
    readonly sentinels: readonly RedisServer[],
    private readonly doorways: readonly Doorway[],
    /** Of each server, what its next start is to have beside the rest. */
    private readonly nextStarts: readonly string[][],
  ) {}

  static async start({
    replicas = 1,
    failoverTimeoutMs = 5_000,
    doorways = [],
    equipments = [],
  }: SentinelTraits = {}): Promise<RedisSentinels> {
    const servers: RedisServer[] = [];
    const sentinels: RedisServer[] = [];
    const configs = Array.from({ length: replicas + 1 }, (_, i) => [
      ...REPLICATION,
      ...announced(doorways[i]),
    ]);
    const all = new RedisSentinels(servers, sentinels, doorways, configs);
    try {
      servers.push(await RedisServer.start({ config: configs[0], equipment: equipments[0] }));
      doorways[0]?.leadsTo(servers[0]!);
      for (let i = 1; i <= replicas; i++) {
        all.copiesFrom(configs[i]!, servers[0]!);
        servers.push(await startReplicaWith(servers[0]!, { config: configs[i], equipment: equipments[i] }));
        doorways[i]?.leadsTo(servers[i]!);
      }
      for (let i = 0; i < 3; i++)
        sentinels.push(await sentinelOf(all.placeOf(servers[0]!), failoverTimeoutMs));
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
          (server) =>
            named.filter((name) => name === String(this.placeOf(server).port)).length >
            this.sentinels.length / 2,
        );
      },
      { timeoutMs: PROMOTION_MS, what: 'the sentinels agree on a master' },
    );
  }

  /** Makes a replica the master, while the old one lives. Resolves when the new one takes writes and is known. */
  async promote(): Promise<RedisServer> {
    const before = await this.master();
    const giveUpAt = performance.now() + PROMOTION_MS;
    for (;;) {
      // Refused for a while after the last one, and while a sentinel has not heard of the replica for some time.
      await until(async () => (await this.sentinels[0]!.cli('SENTINEL', 'failover', NAME)) === 'OK', {
        timeoutMs: PROMOTION_MS,
        what: 'a sentinel begins a promotion',
      });
      try {
        return await this.promoted(before, ONE_PROMOTION_MS);
      } catch (error) {
        // A sentinel gives one up that makes no progress, and does not say so.
        if (performance.now() > giveUpAt) throw error;
      }
    }
  }

  /** Resolves with the new master, once it takes writes and the sentinels send clients there. */
  async promoted(before: RedisServer, timeoutMs = PROMOTION_MS): Promise<RedisServer> {
    return until(
      async () => {
        const master = await this.master();
        return master !== before && (await replicationOf(master, 'role')) === 'master' ? master : undefined;
      },
      { timeoutMs, what: 'a replica has become the master' },
    );
  }

  /** Starts a server that was killed, as a replica of the master. */
  async startAsReplica(server: RedisServer): Promise<void> {
    this.copiesFrom(this.nextStarts[this.servers.indexOf(server)]!, await this.master());
    await server.restart();
  }

  /** Starts a server that was killed, as the master. Its data are what was saved: by default nothing. */
  async startAsMaster(server: RedisServer): Promise<void> {
    this.copiesNobody(this.nextStarts[this.servers.indexOf(server)]!);
    await server.restart();
  }

  /** Where the others reach a server. */
  placeOf(server: RedisServer): Place {
    return { host: server.host, port: this.doorways[this.servers.indexOf(server)]?.port ?? server.port };
  }

  private copiesFrom(config: string[], master: RedisServer): void {
    const { host, port } = this.placeOf(master);
    this.copiesNobody(config);
    config.push(`replicaof ${host} ${port}`);
  }

  private copiesNobody(config: string[]): void {
    const before = config.findIndex((line) => line.startsWith('replicaof '));
    if (before !== -1) config.splice(before, 1);
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
