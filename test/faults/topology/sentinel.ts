import type { Redis } from 'ioredis';
import { until } from '../../support/async.js';
import { replicationOf } from '../../support/servers/redis-replicas.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { RedisSentinels } from '../../support/servers/redis-sentinels.js';
import { acceptsWrites } from '../apps/bare-connection.js';
import { SETTINGS } from '../settings.js';
import type { Ports } from '../workload/worker-messages.js';
import { Failover, type FailoverOptions } from './failover.js';
import { Grounds } from './grounds.js';
import type { Replicated } from './replicated.js';
import { RoleWatch } from './role-watch.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import { ServerDoor } from './server-door.js';
import { PlainNode, type ServerNode } from './server-node.js';

const SERVERS = 2;
const NAME = 'locks';
/** A second promotion is refused for twice as long. */
const FAILOVER_TIMEOUT_MS = 1_000;
/** How long a promotion is waited for that nothing may come of, in ms. */
const PATIENCE_MS = 8_000;
const SETTLED_MS = 60_000;
/** How often the laboratory looks whether there are two masters, in ms. */
const TIDIED_EVERY_MS = 500;
/** How long there may be two, in ms: an app has to leave the old one by itself, in less time. */
const STRAYS_FOR_MS = 4_000;

/** A master, a replica and three sentinels; servers reach each other through doors of their own. */
class SentinelServers implements Replicated {
  readonly groups = 1;

  private readonly operator: NodeJS.Timeout;
  /** Since when a server is a master that is none for the sentinels. */
  private strayedAt: number | undefined;
  private isShut = false;

  constructor(
    private readonly redis: RedisSentinels,
    private readonly nodes: readonly PlainNode[],
    private readonly doors: readonly ServerDoor[],
  ) {
    this.operator = setInterval(() => void this.tidy(), TIDIED_EVERY_MS);
  }

  get sentinels(): readonly RedisServer[] {
    return this.redis.sentinels;
  }

  groupOf(): Promise<number> {
    return Promise.resolve(0);
  }

  async masterOf(): Promise<ServerNode> {
    const master = await this.redis.master();
    return this.nodes.find(({ server }) => server === master)!;
  }

  async promote(_group: number, how: 'in order' | 'at once'): Promise<void> {
    if (how === 'in order') await this.settled();
    await this.redis.promote();
  }

  keepCopiesOut(master: ServerNode): void {
    this.doorOf(master).keepCopiesOut();
  }

  isolate(node: ServerNode): Promise<void> {
    this.isShut = true;
    this.doorOf(node).shut();
    return Promise.resolve();
  }

  async openDoors(): Promise<void> {
    for (const door of this.doors) await door.open();
    this.isShut = false;
  }

  async takenOver(_group: number, from: ServerNode): Promise<void> {
    await until(async () => (await this.masterOf()) !== from, { timeoutMs: PATIENCE_MS }).catch(
      () => undefined,
    );
  }

  startAgain(node: ServerNode): Promise<void> {
    return this.redis.startAsReplica(node.server);
  }

  startEmpty(node: ServerNode): Promise<void> {
    return this.redis.startAsMaster(node.server);
  }

  async settled(): Promise<void> {
    await until(() => this.isSettled(), {
      timeoutMs: SETTLED_MS,
      what: 'there is one master behind the sentinels, and the others copy it',
    });
  }

  /** A sentinel lets an old master go on for ten seconds when it comes back; here somebody looks after that sooner. */
  private async tidy(): Promise<void> {
    try {
      if (!this.isShut && (await this.masters()) > 1) {
        this.strayedAt ??= performance.now();
        if (performance.now() - this.strayedAt > STRAYS_FOR_MS) await this.isSettled();
      } else this.strayedAt = undefined;
    } catch {
      // One of them is down: then there are no two.
      this.strayedAt = undefined;
    }
  }

  private async masters(): Promise<number> {
    const roles = await Promise.all(this.nodes.map(({ server }) => server.cli('ROLE')));
    return roles.filter((role) => (role as unknown[])[0] === 'master').length;
  }

  close(): void {
    clearInterval(this.operator);
  }

  private async isSettled(): Promise<boolean> {
    const master = await this.redis.master();
    const { host, port } = this.redis.placeOf(master);
    for (const { server } of this.nodes) {
      const [role, , copied] = (await server.cli('ROLE')) as [string, unknown, unknown];
      if ((role === 'master') !== (server === master)) {
        // The sentinels may be about to promote another one.
        if (server === master) return false;
        await server.cli('REPLICAOF', host, port);
        for (const type of ['normal', 'pubsub']) await server.cli('CLIENT', 'KILL', 'TYPE', type);
        return false;
      }
      const isUp = (await replicationOf(server, 'master_link_status')) === 'up';
      if (server !== master && !(isUp && copied === port)) return false;
    }
    return true;
  }

  private doorOf(node: ServerNode): ServerDoor {
    return this.doors[this.nodes.findIndex((one) => one === node)]!;
  }
}

/** The port of the master, as a sentinel says. */
const masterNamedBy = async (sentinel: Redis): Promise<string | undefined> =>
  ((await sentinel.call('SENTINEL', 'get-master-addr-by-name', NAME)) as [string, string] | null)?.[1];

/** One Redis behind Sentinel. */
export const startSentinel = async ({
  name,
  workers,
  replicas,
  library,
  settings = SETTINGS,
}: FailoverOptions): Promise<Failover> => {
  const doors = await Promise.all(Array.from({ length: SERVERS }, () => ServerDoor.start()));
  const clocks = await Promise.all(doors.map(() => ServerClock.create()));
  const redis = await RedisSentinels.start({
    replicas: SERVERS - 1,
    failoverTimeoutMs: FAILOVER_TIMEOUT_MS,
    doorways: doors,
    equipments: clocks,
  });
  const grounds = await Grounds.open(settings);
  const nodes = redis.servers.map((server, i) => PlainNode.of(server, clocks[i]));
  const servers = [...redis.servers, ...redis.sentinels];
  const replicated = new SentinelServers(redis, nodes, doors);
  const topology = new Failover({
    name,
    nodes,
    doors,
    roles: new RoleWatch([nodes], grounds.scribe, replicas !== undefined),
    shape: 'sentinel',
    workers,
    grounds,
    replicated,
    seating: {
      servers,
      redis: (ports) => {
        const own = [...doors.map(({ port }) => port), ...redis.sentinels.map(({ port }) => port)];
        const nat: Ports = Object.fromEntries(own.map((port, i) => [port, ports[i]!]));
        return {
          shape: 'sentinel',
          ports: ports.slice(SERVERS),
          name: NAME,
          nat,
          ...(replicas && { replicas }),
        };
      },
      apps: {
        accepting: async (bare) => {
          const named = await Promise.all(
            redis.sentinels.map(({ port }) => masterNamedBy(bare.to(port)).catch(() => undefined)),
          );
          const isMaster = (server: RedisServer): boolean =>
            named.filter((name) => name === String(redis.placeOf(server).port)).length > named.length / 2;
          const master = redis.servers.find(isMaster);
          return master && (await acceptsWrites(bare.to(master.port), { replicas }))
            ? [master.port]
            : undefined;
        },
      },
    },
    stop: async () => {
      replicated.close();
      await redis[Symbol.asyncDispose]();
    },
  });
  await topology.seat(workers, library);
  return topology;
};
