import type { Redis } from 'ioredis';
import { hashSlot } from '../../../lib/stores/redis/hash-slot.js';
import { until } from '../../support/async.js';
import { RedisClusterServers } from '../../support/servers/redis-cluster.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import type { Slots } from '../apps/app-messages.js';
import { acceptsWrites } from '../apps/bare-connection.js';
import { SETTINGS } from '../settings.js';
import type { Ports } from '../workload/worker-messages.js';
import { Failover, type FailoverOptions } from './failover.js';
import { Grounds } from './grounds.js';
import type { MeanwhileMoving, Replicated } from './replicated.js';
import { RoleWatch } from './role-watch.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import { ServerDoor } from './server-door.js';
import { PlainNode, type ServerNode } from './server-node.js';

const MASTERS = 3;
const SLOTS = 16_384;
/** How long a promotion is waited for that nothing may come of, in ms. */
const PATIENCE_MS = 8_000;
const SETTLED_MS = 60_000;

const isMaster = async ({ server }: ServerNode): Promise<boolean> =>
  server.isRunning && ((await server.cli('ROLE')) as unknown[])[0] === 'master';

/** Refused while servers take each other for dead, which they do on a machine that is too busy. */
const inTheEnd = async (what: string, step: () => Promise<void>): Promise<void> => {
  await until(() => step().then(() => true), { timeoutMs: SETTLED_MS, what });
};

/** Three masters and for each a replica; servers reach each other through doors of their own. */
class ClusterServers implements Replicated {
  readonly groups = MASTERS;
  private readonly ids = new Map<ServerNode, string>();

  constructor(
    private readonly redis: RedisClusterServers,
    private readonly nodes: readonly ServerNode[],
    private readonly doors: readonly ServerDoor[],
  ) {}

  async groupOf(finalKey: string): Promise<number> {
    const master = await this.redis.masterOf(finalKey);
    return this.nodes.findIndex(({ server }) => server === master) % MASTERS;
  }

  masterOf(group: number): Promise<ServerNode> {
    return until(
      async () => {
        const masters = await Promise.all(
          this.nodesOf(group).map(async (node) => (await isMaster(node)) && node),
        );
        const [one, other] = masters.filter((node) => node !== false);
        return other ? undefined : one;
      },
      { timeoutMs: SETTLED_MS, what: `there is one master in group ${group + 1}` },
    );
  }

  async promote(group: number, how: 'in order' | 'at once'): Promise<void> {
    const master = await until(() => this.requestedToTakeOver(group, how), {
      timeoutMs: SETTLED_MS,
      what: `a replica of group ${group + 1} is asked to take over`,
    });
    await this.takenOver(group, master);
  }

  /** Refused while its master is down, and by a replica that has taken over meanwhile. */
  private async requestedToTakeOver(group: number, how: 'in order' | 'at once'): Promise<ServerNode> {
    const master = await this.masterOf(group);
    const replica = this.nodesOf(group).find((node) => node !== master)!;
    await replica.server.cli('CLUSTER', 'FAILOVER', ...(how === 'at once' ? ['TAKEOVER'] : []));
    return master;
  }

  keepCopiesOut(master: ServerNode): void {
    this.doorOf(master).keepCopiesOut();
  }

  async isolate(node: ServerNode): Promise<void> {
    const id = this.ids.get(node) ?? (await node.server.text('CLUSTER', 'MYID'));
    this.ids.set(node, id);
    this.doorOf(node).shut();
    for (const door of this.doors) if (door !== this.doorOf(node)) door.shutOutOnBus(id);
  }

  async openDoors(): Promise<void> {
    for (const door of this.doors) await door.open();
  }

  async takenOver(group: number, from: ServerNode): Promise<void> {
    const others = this.nodesOf(group).filter((node) => node !== from);
    const hasTaken = async (): Promise<boolean> => (await Promise.all(others.map(isMaster))).some(Boolean);
    await until(hasTaken, { timeoutMs: PATIENCE_MS }).catch(() => undefined);
  }

  startAgain(node: ServerNode): Promise<void> {
    // What it has on its disk is who it is in the cluster, and no locks.
    return node.startAgain({ keepData: true });
  }

  startEmpty(node: ServerNode): Promise<void> {
    return this.startAgain(node);
  }

  async settled(): Promise<void> {
    for (const { server } of this.nodes) {
      await until(async () => (await server.text('CLUSTER', 'INFO')).includes('cluster_state:ok'), {
        timeoutMs: SETTLED_MS,
        what: `the cluster is well for the server on port ${server.port}`,
      });
    }
    for (let group = 0; group < MASTERS; group++) await this.masterOf(group);
    await this.redis.inStep();
  }

  async moveSlot(finalKey: string, { begun, keysAreThere }: MeanwhileMoving): Promise<void> {
    const { redis } = this;
    const group = await this.groupOf(finalKey);
    let known: { readonly from: RedisServer; readonly to: RedisServer } | undefined;
    // One that takes over has not been told that a slot moves, and may still have keys that its master had given away.
    const sides = async (): Promise<{ from: RedisServer; to: RedisServer }> => {
      const { server: from } = await this.masterOf(group);
      const { server: to } = await this.masterOf((group + 1) % MASTERS);
      if (from !== known?.from || to !== known.to) {
        await redis.beginMove(finalKey, from, to);
        if (known) await redis.moveKeys(finalKey, from, to, { replace: true });
      }
      known = { from, to };
      return known;
    };
    const step = (what: string, take: (from: RedisServer, to: RedisServer) => Promise<void>): Promise<void> =>
      inTheEnd(what, async () => {
        const { from, to } = await sides();
        await take(from, to);
      });

    await step('a slot begins to move', () => Promise.resolve());
    await begun();
    await step('the keys of a slot move', (from, to) => redis.moveKeys(finalKey, from, to));
    await keysAreThere();
    await step('a slot has moved', (_, to) => redis.endMove(finalKey, to));
  }

  private nodesOf(group: number): readonly ServerNode[] {
    return this.nodes.filter((_, i) => i % MASTERS === group);
  }

  private doorOf(node: ServerNode): ServerDoor {
    return this.doors[this.nodes.indexOf(node)]!;
  }
}

/** The slots of a group, but for the few that were moved. */
const slotsOf = (group: number): Slots => {
  const share = Math.ceil(SLOTS / MASTERS);
  return { from: group * share, to: Math.min(SLOTS, (group + 1) * share) };
};

const keyIn = ({ from, to }: Slots): string => {
  for (let i = 0; ; i++) {
    const slot = hashSlot(`laboratory ${i}`);
    if (slot >= from && slot < to) return `laboratory ${i}`;
  }
};

const epochOf = async (client: Redis): Promise<number> => {
  const info = (await client.call('CLUSTER', 'INFO')) as string;
  return Number(/cluster_my_epoch:(\d+)/.exec(info)?.[1]);
};

/** A Redis Cluster. */
export const startCluster = async ({
  name,
  workers,
  replicas,
  library,
  nodeTimeoutMs,
  settings = SETTINGS,
}: FailoverOptions): Promise<Failover> => {
  const doors = await Promise.all(Array.from({ length: 2 * MASTERS }, () => ServerDoor.start()));
  const clocks = await Promise.all(doors.map(() => ServerClock.create()));
  const redis = await RedisClusterServers.start({
    masters: MASTERS,
    doorways: doors,
    equipments: clocks,
    nodeTimeoutMs,
  });
  const grounds = await Grounds.open(settings);
  const { servers } = redis;
  const nodes = servers.map((server, i) => PlainNode.of(server, clocks[i]));
  const groups = Array.from({ length: MASTERS }, (_, group) => nodes.filter((_, i) => i % MASTERS === group));
  const topology = new Failover({
    name,
    nodes,
    doors,
    roles: new RoleWatch(groups, grounds.scribe, replicas !== undefined),
    shape: 'cluster',
    workers,
    grounds,
    replicated: new ClusterServers(redis, nodes, doors),
    seating: {
      servers,
      redis: (ports) => {
        const nat: Ports = Object.fromEntries(doors.map(({ port }, i) => [port, ports[i]!]));
        // A worker knows all servers, since any of them may be down.
        return { shape: 'cluster', ports, nat, ...(replicas && { replicas }) };
      },
      apps: {
        groups: MASTERS,
        slotsOf,
        accepting: async (bare, group) => {
          const key = keyIn(slotsOf(group));
          const accepting: { readonly port: number; readonly epoch: number }[] = [];
          for (const { server } of groups[group]!) {
            const { port } = server;
            if (await acceptsWrites(bare.to(port), { key, replicas }))
              accepting.push({ port, epoch: await epochOf(bare.to(port)) });
          }
          // A master that was replaced may not have heard of it.
          const [latest] = accepting.sort((a, b) => b.epoch - a.epoch);
          return latest && [latest.port];
        },
      },
    },
    stop: () => redis[Symbol.asyncDispose](),
  });
  await topology.seat(workers, library);
  return topology;
};
