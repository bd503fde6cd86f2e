import type { Runtime } from '../../../core/util/runtime.js';
import type { RedisAddress } from '../connection/redis-client.js';
import type { RedisConnection, RedisConnectionOptions } from '../connection/redis-connection.js';
import { RedisFailure } from '../connection/redis-failure.js';
import type { RedisSession } from '../connection/redis-session.js';
import type { OneOfServers, RedisTopology } from '../connection/redis-topology.js';
import { hashSlot, tagOfSlot } from '../hash-slot.js';
import { ClusterChannels } from './cluster-channels.js';
import { ClusterCommands } from './cluster-commands.js';
import { ClusterServer } from './cluster-server.js';
import type { ClusterEndpoint } from './cluster-settings.js';
import { bestOf, lookAt, type ClusterInfo } from './look-at.js';
import { SlotRefresher } from './slot-refresher.js';
import { DiscoveryConnections } from './discovery-connections.js';
import { sharded } from './sharded-scripts.js';
import { SlotMap } from './slot-map.js';
import { slotWithoutServer, textOfAddress, type NodeAddress } from './slots.js';

/** Time to wait for connected servers, in ms. Hanging ones must not delay the discovery connections for longer. */
const CONNECTED_MS = 300;
/** Time for which a server without slots is kept that was importing one, in ms. */
const GETTING_MS = 60_000;

export interface ClusterOptions extends RedisConnectionOptions {
  /** Whether to use sharded Pub/Sub. Default: when the servers have it. */
  readonly shardedPubSub?: boolean | undefined;
  /** Whether to follow ASK to a server that imports a slot, or to wait until it has the slot. Default: true. */
  readonly followsAsk?: boolean;
}

/**
 * The masters of a Redis Cluster, each with its own connections, and the map of their slots. A connection is opened at
 * the first request for its server.
 */
export class RedisCluster implements RedisTopology {
  readonly hasSlots = true;
  readonly commands: ClusterCommands;
  readonly channels: ClusterChannels;
  readonly address: RedisAddress;
  readonly place: string;
  onAgain: () => void = () => undefined;
  /** Servers that may get requests, by address. */
  private readonly servers = new Map<string, ClusterServer>();
  /** Servers that were importing slots, and the time until which each is kept. */
  private readonly getting = new Map<ClusterServer, number>();
  private readonly slots = new SlotMap();
  private readonly discoveryConnections: DiscoveryConnections;
  private readonly refresher: SlotRefresher;
  private isSharded = false;
  private closed = false;

  constructor(
    private readonly endpoint: ClusterEndpoint,
    private readonly options: ClusterOptions,
  ) {
    const { timeoutMs, runtime, isCheck } = options;
    const [seed] = endpoint.seeds;
    this.address = { name: `the cluster at ${textOfAddress(seed!)}`, isOneServer: false };
    this.place = this.address.name;
    this.discoveryConnections = new DiscoveryConnections(endpoint, { timeoutMs, runtime, isCheck });
    this.refresher = new SlotRefresher({ look: () => this.look(), isMended: () => this.isMended }, runtime);
    const cluster = this as RedisCluster;
    this.commands = new ClusterCommands({
      timeoutMs,
      runtime,
      get isSharded() {
        return cluster.isSharded;
      },
      connectionTo: (name) => this.connectionTo(name),
      openedTo: (name) => this.openedTo(name),
      isNeeded: (connection) => this.slots.masters.some((server) => server.connection === connection),
      followsAsk: options.followsAsk ?? true,
      moved: (slot, to) => this.moved(slot, to),
      lookSoon: () => this.refresher.soon(),
      connectionAt: (at) => this.gettingAt(at).connection,
      hostOf: (connection) => this.hostOf(connection),
    });
    this.channels = new ClusterChannels({
      // Without sharded Pub/Sub every server announces all messages, but only scripts at the slot's server count its
      // listeners.
      listensAt: (channel) => this.slots.serverOf(channel),
      known: () => this.known(),
      refresh: () => this.refresher.soon(),
    });
  }

  get publish(): 'PUBLISH' | 'SPUBLISH' {
    return this.isSharded ? 'SPUBLISH' : 'PUBLISH';
  }

  get hasQueues(): boolean {
    return this.isSharded;
  }

  get subscriptions(): number {
    let sum = 0;
    for (const server of this.servers.values()) sum += server.subscriptions;
    return sum;
  }

  connectionTo(name: string): RedisConnection | undefined {
    return this.slots.serverOf(name)?.connection;
  }

  async openedTo(name: string): Promise<unknown> {
    const { timeoutMs, runtime } = this.options;
    const giveUpAt = runtime.now() + timeoutMs;
    for (;;) {
      await this.known();
      const connection = this.connectionTo(name);
      if (!connection) break;
      try {
        return await connection.opened();
      } catch (failure) {
        // Another server has taken over while the request waited for this one.
        const isReplaced = this.connectionTo(name) !== connection && !this.closed;
        if (!isReplaced || runtime.now() >= giveUpAt) throw failure;
      }
    }
    this.refresher.soon();
    throw slotWithoutServer(name);
  }

  connectionOf(session: RedisSession): RedisConnection | undefined {
    for (const { connection } of this.servers.values()) if (connection.id === session.of) return connection;
    return undefined;
  }

  groupOf(name: string): number {
    return hashSlot(name);
  }

  async requestEach<T>(request: (server: OneOfServers) => Promise<T>): Promise<readonly T[]> {
    await this.known();
    const { masters } = this.slots;
    if (masters.length === 0) {
      throw new RedisFailure('no server of the cluster has a slot; look at CLUSTER NODES', 'not-executed', {
        passing: true,
      });
    }
    return Promise.all(
      masters.map((server) => {
        const slot = this.slots.slotOf(server);
        const aKey = slot === undefined ? undefined : `{${tagOfSlot(slot)}}`;
        return request({ connection: server.connection, name: textOfAddress(server.at), aKey });
      }),
    );
  }

  known(): Promise<void> {
    if (this.closed) return Promise.reject(closedFailure());
    return this.slots.isKnown ? Promise.resolve() : this.refresher.now();
  }

  ready(): Promise<void> | undefined {
    return this.slots.isKnown && !this.closed ? undefined : this.known();
  }

  duplicate(): RedisTopology | undefined {
    if (this.closed) return undefined;
    const { endpoint, options } = this;
    const { timeoutMs, runtime, shardedPubSub } = options;
    return new RedisCluster(endpoint.forChecks ?? endpoint, {
      timeoutMs,
      runtime,
      shardedPubSub,
      isCheck: true,
    });
  }

  close(): void {
    this.closed = true;
    this.refresher.close();
    this.discoveryConnections.close();
    for (const server of this.servers.values()) server.close();
    this.servers.clear();
  }

  private hostOf(connection: RedisConnection): string {
    for (const server of this.servers.values()) if (server.connection === connection) return server.at.host;
    return this.endpoint.seeds[0]!.host;
  }

  private serverAt(at: NodeAddress): ClusterServer {
    const name = textOfAddress(at);
    const known = this.servers.get(name);
    if (known) return known;
    const { endpoint, options } = this;
    const server: ClusterServer = new ClusterServer(at, {
      ...options,
      scripts: this.isSharded ? options.scripts?.map(sharded) : options.scripts,
      connect: (address) => endpoint.connect(address),
      isSharded: () => this.isSharded,
      onMoved: () => this.refresher.soon(),
    });
    server.connection.onAgain = () => this.onAgain();
    server.connection.onDown = (why) =>
      why === 'ended' ? this.refresher.soon() : this.refresher.unlessMended();
    if (this.closed) server.close();
    this.servers.set(name, server);
    return server;
  }

  /** Returns a server that is importing a slot. It has no slot yet, so a refresh would otherwise close it. */
  private gettingAt(at: NodeAddress): ClusterServer {
    const server = this.serverAt(at);
    this.getting.set(server, this.options.runtime.now() + GETTING_MS);
    return server;
  }

  private moved(slot: number, to: NodeAddress): void {
    if (this.slots.move(slot, this.gettingAt(to))) this.channels.follow();
    this.refresher.soon();
  }

  /** Whether each master that a connection was requested for has one. */
  private get isMended(): boolean {
    return this.slots.masters.every(({ connection }) => connection.current ?? !connection.isWanted);
  }

  private async look(): Promise<void> {
    if (this.closed) throw closedFailure();
    const connected = this.slots.masters.filter(({ connection }) => connection.current);
    const seen = connected.length > 0 ? await soonFrom(connected, this.options.runtime) : undefined;
    if (this.closed) throw closedFailure();
    // The connected servers may be the very ones that are cut off from the others.
    const info = seen?.isOk ? seen : await this.bestDiscovered(seen);
    if (this.closed) throw closedFailure();
    if (!this.slots.isKnown) this.isSharded = this.options.shardedPubSub ?? info.canShard;
    this.apply(info);
  }

  private bestDiscovered(seen: ClusterInfo | undefined): Promise<ClusterInfo> {
    const discovered = this.discoveryConnections.lookFrom(this.slots.masters);
    if (!seen) return discovered;
    return discovered.then(
      (info) => bestOf([info, seen])!,
      () => seen,
    );
  }

  private apply({ ranges }: ClusterInfo): void {
    const hasLostMasters = this.slots.replace(ranges, (at) => this.serverAt(at));
    this.forgetOthers();
    this.channels.follow();
    // A former master may have had holds that its successor lacks.
    if (hasLostMasters) this.onAgain();
  }

  /** Closes the connections to servers without slots. A request that waits for such a server goes to its successor. */
  private forgetOthers(): void {
    const needed = new Set(this.slots.masters);
    for (const [server, until] of this.getting) {
      if (until > this.options.runtime.now() && !needed.has(server)) needed.add(server);
      else this.getting.delete(server);
    }
    for (const [name, server] of this.servers) {
      if (needed.has(server)) continue;
      this.servers.delete(name);
      server.close('the server is none of the cluster any more');
    }
  }
}

/** Resolves with the view of connected servers; undefined when none of them replies in time. */
const soonFrom = (servers: readonly ClusterServer[], runtime: Runtime): Promise<ClusterInfo | undefined> =>
  new Promise((resolve) => {
    const timer = runtime.setTimer(() => resolve(undefined), CONNECTED_MS);
    const info = lookAt(servers, runtime).catch(() => undefined);
    void info.then(resolve).finally(() => runtime.clearTimer(timer));
  });

const closedFailure = (): RedisFailure => new RedisFailure('the lock store is closed', 'not-executed', {});
