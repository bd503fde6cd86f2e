import { hashSlot } from '../../../lib/stores/redis/hash-slot.js';
import type { RedisClusterOptions } from '../../../lib/stores/redis/cluster/cluster-settings.js';
import { until } from '../async.js';
import { LOOPBACK } from '../loopback.js';
import { RedisServer, type RedisServerOptions } from './redis-server.js';
import type { Equipment } from './server-process.js';
import { REPLICATION } from './redis-replicas.js';

const SLOTS = 16_384;
/**
 * After how long without an answer a server counts as failed, in ms: soon where a replica is to take over, else not
 * because the machine has much else to do.
 */
const NODE_TIMEOUT_MS = { withReplicas: 1_000, without: 15_000 };
const SETTLED_MS = 60_000;

/** Where other servers reach a server, when something is between them; it is told to which one it leads. */
export interface Doorway {
  readonly port: number;
  readonly busPort: number;
  leadsTo(server: RedisServer): void;
}

export interface RedisClusterTraits extends RedisServerOptions {
  readonly masters?: number;
  /** For each master one, which takes over. Default: true. */
  readonly replicas?: boolean;
  /** After how long without an answer a server counts as failed. Default: soon, if there are replicas. */
  readonly nodeTimeoutMs?: number | undefined;
  /** One for each server, masters first. Default: servers reach each other where they are. */
  readonly doorways?: readonly Doorway[];
  /** One for each server, masters first. */
  readonly equipments?: readonly Equipment[];
}

const announced = (doorway: Doorway | undefined): readonly string[] =>
  doorway
    ? [
        `cluster-announce-ip ${LOOPBACK}`,
        `cluster-announce-port ${doorway.port}`,
        `cluster-announce-bus-port ${doorway.busPort}`,
      ]
    : [];

/** Masters that share the slots, and for each of them a replica: all on loopback. */
export class RedisClusterServers implements AsyncDisposable {
  private constructor(
    /** The masters first, then their replicas, in the same order. */
    readonly servers: readonly RedisServer[],
    private readonly count: number,
    private readonly doorways: readonly Doorway[],
  ) {}

  static async start({
    masters = 3,
    replicas = true,
    nodeTimeoutMs = replicas ? NODE_TIMEOUT_MS.withReplicas : NODE_TIMEOUT_MS.without,
    config = [],
    doorways = [],
    equipments = [],
    ...options
  }: RedisClusterTraits = {}): Promise<RedisClusterServers> {
    const lines = [
      `cluster-node-timeout ${nodeTimeoutMs}`,
      'cluster-require-full-coverage no',
      'cluster-replica-validity-factor 0',
      'cluster-migration-barrier 100',
      ...REPLICATION,
      ...config,
    ];
    const total = replicas ? masters * 2 : masters;
    const servers = await RedisServer.startAll(
      Array.from({ length: total }, (_, i) => {
        const config = [...lines, ...announced(doorways[i])];
        return { ...options, cluster: true, equipment: equipments[i], config };
      }),
    );
    const cluster = new RedisClusterServers(servers, masters, doorways);
    try {
      for (const [i, doorway] of doorways.entries()) doorway.leadsTo(servers[i]!);
      await cluster.join();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What an app gives as `redis`. */
  get options(): RedisClusterOptions {
    return { cluster: this.servers.slice(0, this.count).map(({ host, port }) => ({ host, port })) };
  }

  /** The master that has the slot of the name, as most servers say. */
  async masterOf(name: string): Promise<RedisServer> {
    return until(
      async () => {
        const owners = await Promise.all(
          this.running.map((server) => this.ownerSeenBy(server, hashSlot(name))),
        );
        return this.running.find(
          (server) => owners.filter((owner) => owner === this.portOf(server)).length * 2 > owners.length,
        );
      },
      { timeoutMs: SETTLED_MS, what: 'the servers agree on who has the slot' },
    );
  }

  /** Another master than the one that has the slot of the name. */
  async otherThan(name: string): Promise<RedisServer> {
    const owner = await this.masterOf(name);
    const others = await this.masters();
    return others.find(({ port }) => port !== owner.port)!;
  }

  /** The masters at the moment. */
  async masters(): Promise<readonly RedisServer[]> {
    const roles = await Promise.all(
      this.running.map(async (server) => ((await server.cli('ROLE')) as unknown[])[0]),
    );
    return this.running.filter((_, i) => roles[i] === 'master');
  }

  /** Begins to give a slot to another master: keys can be on either from now on. */
  async beginMove(name: string, from: RedisServer, to: RedisServer): Promise<void> {
    const slot = hashSlot(name);
    await to.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await this.idOf(from));
    await from.cli('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await this.idOf(to));
  }

  /** The keys of a slot that a server has. */
  async keysAt(name: string, server: RedisServer): Promise<string[]> {
    return (await server.cli('CLUSTER', 'GETKEYSINSLOT', hashSlot(name), 100)) as string[];
  }

  /** Moves the keys of a slot that is being given away: these, or all that there are. */
  async moveKeys(
    name: string,
    from: RedisServer,
    to: RedisServer,
    { only, replace = false }: { readonly only?: readonly string[]; readonly replace?: boolean } = {},
  ): Promise<void> {
    const how = replace ? ['REPLACE'] : [];
    for (;;) {
      const keys = only ?? (await this.keysAt(name, from));
      if (keys.length > 0) await from.cli('MIGRATE', to.host, to.port, '', 0, 5_000, ...how, 'KEYS', ...keys);
      if (only || keys.length === 0) return;
    }
  }

  /** Ends the move of a slot: all servers know of it. */
  async endMove(name: string, to: RedisServer): Promise<void> {
    const slot = hashSlot(name);
    const id = await this.idOf(to);
    for (const server of [to, ...(await this.masters())]) {
      await server.cli('CLUSTER', 'SETSLOT', slot, 'NODE', id);
    }
  }

  /** Gives a slot with all its keys to another master. */
  async move(name: string): Promise<RedisServer> {
    const [from, to] = [await this.masterOf(name), await this.otherThan(name)];
    await this.beginMove(name, from, to);
    await this.moveKeys(name, from, to);
    await this.endMove(name, to);
    return to;
  }

  /** The replica of a master. */
  async replicaOf(master: RedisServer): Promise<RedisServer> {
    const id = await this.idOf(master);
    const found = await Promise.all(
      this.running.map(async (server) =>
        (await server.text('CLUSTER', 'NODES')).split('\n').some((line) => {
          const [, , flags, of] = line.split(' ');
          return flags?.includes('myself') === true && of === id;
        }),
      ),
    );
    const replica = this.running.find((_, i) => found[i]);
    if (!replica) throw new Error(`the master on port ${master.port} has no replica`);
    return replica;
  }

  /** Resolves once each replica has what its master has. */
  async inStep(): Promise<void> {
    for (const master of await this.masters()) {
      await until(
        async () => {
          const replication = await master.text('INFO', 'replication');
          const offset = /^master_repl_offset:(\d+)/m.exec(replication)?.[1];
          return new RegExp(`^slave0:.*state=online,offset=${offset},`, 'm').test(replication);
        },
        { timeoutMs: SETTLED_MS, what: `the replica of the master on port ${master.port} is in step` },
      );
    }
  }

  /** Makes the replica of a master the master in its place, as an operator would. */
  async promote(master: RedisServer): Promise<RedisServer> {
    const replica = await this.replicaOf(master);
    await replica.cli('CLUSTER', 'FAILOVER');
    await until(async () => ((await replica.cli('ROLE')) as unknown[])[0] === 'master', {
      timeoutMs: SETTLED_MS,
      what: `the replica on port ${replica.port} is the master`,
    });
    return replica;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  /** How it is called by the others. */
  portOf(server: RedisServer): number {
    return this.doorways[this.servers.indexOf(server)]?.port ?? server.port;
  }

  private get running(): readonly RedisServer[] {
    return this.servers.filter(({ isRunning }) => isRunning);
  }

  private idOf(server: RedisServer): Promise<string> {
    return server.text('CLUSTER', 'MYID');
  }

  private async ownerSeenBy(server: RedisServer, slot: number): Promise<number | undefined> {
    const ranges = (await server.cli('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
    return ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
  }

  private async join(): Promise<void> {
    const { servers, count } = this;
    const [first] = servers;
    const share = Math.ceil(SLOTS / count);
    for (let i = 0; i < count; i++) {
      const slots = Array.from({ length: Math.min(SLOTS - i * share, share) }, (_, slot) => i * share + slot);
      await servers[i]!.cli('CLUSTER', 'ADDSLOTS', ...slots);
      await servers[i]!.cli('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    }
    for (const [i, server] of servers.entries()) {
      const doorway = this.doorways[i];
      const bus = doorway ? [doorway.busPort] : [];
      if (i > 0) await first!.cli('CLUSTER', 'MEET', server.host, this.portOf(server), ...bus);
    }
    await this.settled(
      'the servers know each other',
      async (server) =>
        (await server.text('CLUSTER', 'NODES'))
          .trim()
          .split('\n')
          .every((line) => line.includes(' connected')) &&
        (await server.text('CLUSTER', 'INFO')).includes(`cluster_known_nodes:${servers.length}\r\n`),
    );
    for (const [i, server] of servers.slice(count).entries()) {
      const id = await this.idOf(servers[i]!);
      await server.cli('CLUSTER', 'REPLICATE', id);
    }
    // A server calls the cluster well as soon as it has heard of some slots.
    await this.settled('each server knows who has which slots', async (server) => {
      const info = await server.text('CLUSTER', 'INFO');
      return info.includes('cluster_state:ok') && info.includes(`cluster_slots_assigned:${SLOTS}\r\n`);
    });
    if (servers.length > count) await this.inStep();
  }

  private async settled(what: string, isTrue: (server: RedisServer) => Promise<boolean>): Promise<void> {
    for (const server of this.servers) {
      await until(() => isTrue(server), { timeoutMs: SETTLED_MS, what });
    }
  }
}
