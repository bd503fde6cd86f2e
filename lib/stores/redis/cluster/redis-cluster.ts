import { unbound } from '../../../core/runtime.js';
import type { RedisAddress } from '../connection/redis-client.js';
import type { RedisConnection, RedisConnectionOptions } from '../connection/redis-connection.js';
import type { Probe } from '../connection/probe.js';
import { RedisFailure } from '../connection/redis-failure.js';
import type { RedisSession } from '../connection/redis-session.js';
import type { RedisTopology } from '../connection/redis-topology.js';
import { hashSlot, tagOfSlot } from '../hash-slot.js';
import { ClusterChannels } from './cluster-channels.js';
import { ClusterCommands } from './cluster-commands.js';
import { ClusterServer } from './cluster-server.js';
import type { ClusterEndpoint } from './cluster-settings.js';
import { bestOf, lookAt, type Sight } from './look-at.js';
import { sharded } from './sharded-scripts.js';
import { slotWithoutServer, textOfAddress, type NodeAddress } from './slots.js';

/** How soon it is looked anew which server has which slots after a connection has ended, in ms; then ever later. */
const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 1_000;
/** How long a server without slots is kept that was getting one, in ms. */
const GETTING_MS = 60_000;

/** How a cluster is connected to. */
export interface ClusterOptions extends Omit<RedisConnectionOptions, 'probe'> {
  /** What is run on each new connection before anything is asked there, for a name that the server has. */
  readonly probeFor: (name: string) => Probe;
  /** Whether messages are sharded; undefined: where the servers can. */
  readonly shardedPubSub?: boolean | undefined;
  /** False: what belongs to a server that is only getting the slot waits until it has it. Default: true. */
  readonly followsAsk?: boolean;
}

/**
 * The masters of a Redis Cluster, each with connections of its own, and which of them has which slots. A connection is
 * made when something is asked there.
 */
export class RedisCluster implements RedisTopology {
  readonly hasSlots = true;
  readonly commands: ClusterCommands;
  readonly channels: ClusterChannels;
  readonly address: RedisAddress;
  onAgain: () => void = () => undefined;
  /** The servers there is something to ask at, by their addresses. */
  private readonly servers = new Map<string, ClusterServer>();
  /** Servers that were getting slots, until when they are kept. */
  private readonly getting = new Map<ClusterServer, number>();
  /**
   * Which server has which slot, as far as is known: Redis's slot map. A server that says MOVED changes one slot of it at
   * once, and the rest is looked at soon. One that is importing slots (ASK) is not in it yet. Undefined before
   * that is known.
   */
  private slots: (ClusterServer | undefined)[] | undefined;
  /** Those that have slots. */
  private masters: readonly ClusterServer[] = [];
  /** The same when it was looked last, before servers said that slots have moved. */
  private lastMasters: readonly ClusterServer[] = [];
  /** Connections that only ask which server has which slots. */
  private readonly scouts = new Set<ClusterServer>();
  private isSharded = false;
  private looking: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private pauseMs = FIRST_LOOK_MS;
  private closed = false;

  constructor(
    private readonly endpoint: ClusterEndpoint,
    private readonly options: ClusterOptions,
  ) {
    const { timeoutMs } = options;
    const [seed] = endpoint.seeds;
    this.address = { name: `the cluster at ${textOfAddress(seed!)}`, isOneServer: false };
    const cluster = this as RedisCluster;
    this.commands = new ClusterCommands({
      timeoutMs,
      get isSharded() {
        return cluster.isSharded;
      },
      connectionTo: (name) => this.connectionTo(name),
      openedTo: (name) => this.openedTo(name),
      isNeeded: (connection) => this.masters.some((server) => server.connection === connection),
      followsAsk: options.followsAsk ?? true,
      moved: (slot, to) => this.moved(slot, to),
      lookSoon: () => this.lookSoon(),
      connectionAt: (at) => this.gettingAt(at).connection,
      hostOf: (connection) => this.hostOf(connection),
    });
    this.channels = new ClusterChannels({
      listensAt: (channel) => this.listensAt(channel),
      known: () => this.known(),
      refresh: () => this.lookSoon(),
    });
  }

  get publish(): 'PUBLISH' | 'SPUBLISH' {
    return this.isSharded ? 'SPUBLISH' : 'PUBLISH';
  }

  get hasTurns(): boolean {
    return this.isSharded;
  }

  get subscriptions(): number {
    let sum = 0;
    for (const server of this.servers.values()) sum += server.subscriptions;
    return sum;
  }

  get isConnected(): boolean {
    return [...this.servers.values()].some(({ connection }) => connection.current);
  }

  connectionTo(name: string): RedisConnection | undefined {
    return this.slots?.[hashSlot(name)]?.connection;
  }

  async openedTo(name: string): Promise<unknown> {
    const giveUpAt = performance.now() + this.options.timeoutMs;
    for (;;) {
      await this.known();
      const connection = this.connectionTo(name);
      if (!connection) break;
      try {
        return await connection.opened();
      } catch (failure) {
        // Another server has taken over while this one was waited for.
        const isReplaced = this.connectionTo(name) !== connection && !this.closed;
        if (!isReplaced || performance.now() >= giveUpAt) throw failure;
      }
    }
    this.lookSoon();
    throw slotWithoutServer(name);
  }

  connectionOf(session: RedisSession): RedisConnection | undefined {
    for (const { connection } of this.servers.values()) if (connection.id === session.of) return connection;
    return undefined;
  }

  groupOf(name: string): number {
    return hashSlot(name);
  }

  async askEach<T>(ask: (connection: RedisConnection, name?: string) => Promise<T>): Promise<readonly T[]> {
    await this.known();
    if (this.masters.length === 0) {
      throw new RedisFailure(
        'no server of the cluster has a slot; look at CLUSTER NODES',
        'not-executed',
        {},
      );
    }
    return Promise.all(this.masters.map(({ connection, at }) => ask(connection, textOfAddress(at))));
  }

  /** Resolves when it is known which server has which slots. */
  known(): Promise<void> {
    if (this.closed) return Promise.reject(closedFailure());
    return this.slots ? Promise.resolve() : this.look();
  }

  ready(): Promise<void> | undefined {
    return this.slots && !this.closed ? undefined : this.known();
  }

  twin(): RedisTopology | undefined {
    const { timeoutMs, probeFor, shardedPubSub } = this.options;
    return this.closed ? undefined : new RedisCluster(this.endpoint, { timeoutMs, probeFor, shardedPubSub });
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const server of [...this.servers.values(), ...this.scouts]) server.close();
    this.servers.clear();
  }

  /** Where messages are not sharded each server hears all of them. The one with the slot tells how many others listen there. */
  private listensAt(channel: string): ClusterServer | undefined {
    return this.slots?.[hashSlot(channel)];
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
      probe: () => this.probeFor(server),
      connect: (address) => endpoint.connect(address),
      isSharded: () => this.isSharded,
      onMoved: () => this.lookSoon(),
    });
    server.connection.onAgain = () => this.onAgain();
    server.connection.onEnd = () => this.lookSoon();
    if (this.closed) server.close();
    this.servers.set(name, server);
    return server;
  }

  /** A server that is getting a slot is no master of it yet, so no look at the slots keeps it. */
  private gettingAt(at: NodeAddress): ClusterServer {
    const server = this.serverAt(at);
    this.getting.set(server, performance.now() + GETTING_MS);
    return server;
  }

  private moved(slot: number, to: NodeAddress): void {
    const server = this.gettingAt(to);
    if (this.slots && this.slots[slot] !== server) {
      this.slots[slot] = server;
      this.masters = mastersOf(this.slots);
      this.channels.follow();
    }
    this.lookSoon();
  }

  private lookSoon(): void {
    if (this.closed || this.timer) return;
    const later = (): void => {
      this.timer = undefined;
      this.look().then(
        () => (this.isMended ? (this.pauseMs = FIRST_LOOK_MS) : this.lookSoon()),
        () => this.lookSoon(),
      );
    };
    const { pauseMs } = this;
    this.pauseMs = Math.min(pauseMs * 2, LAST_LOOK_MS);
    this.timer = unbound(() => setTimeout(later, pauseMs).unref());
  }

  /** Whether there is a connection to each server that has been connected to. */
  private get isMended(): boolean {
    return this.masters.every(({ connection }) => connection.current ?? !connection.hasBeenUp);
  }

  private look(): Promise<void> {
    if (this.closed) return Promise.reject(closedFailure());
    const looking = (this.looking ??= this.lookAtAll().finally(() => (this.looking = undefined)));
    return looking;
  }

  private async lookAtAll(): Promise<void> {
    const { masters } = this;
    const connected = masters.filter(({ connection }) => connection.current);
    const seen = connected.length > 0 ? await lookAt(connected).catch(() => undefined) : undefined;
    // Those that are connected may be just the ones that are cut off from the others.
    const sight = seen?.isOk ? seen : await this.bestWithScouts(seen);
    if (this.closed) throw closedFailure();
    if (!this.slots) this.isSharded = this.options.shardedPubSub ?? sight.canShard;
    this.apply(sight);
  }

  private bestWithScouts(seen: Sight | undefined): Promise<Sight> {
    const scouted = this.scout();
    if (!seen) return scouted;
    return scouted.then(
      (sight) => bestOf([sight, seen])!,
      () => seen,
    );
  }

  /**
   * Asks the servers that were named at the start, and those that had slots, on connections of its own: what is known of a
   * server when the locks' own connection begins decides how that is used.
   */
  private async scout(): Promise<Sight> {
    if (this.closed) throw closedFailure();
    const { endpoint, options, scouts, masters } = this;
    const { timeoutMs } = options;
    const places = new Map(
      [...endpoint.seeds, ...masters.map(({ at }) => at)].map((at) => [textOfAddress(at), at]),
    );
    const sent = [...places.values()].map(
      (at) =>
        new ClusterServer(at, {
          timeoutMs,
          connect: (address) => endpoint.connect(address),
          isSharded: () => false,
          onMoved: () => undefined,
        }),
    );
    for (const one of sent) scouts.add(one);
    try {
      return await lookAt(sent);
    } finally {
      for (const one of sent) {
        scouts.delete(one);
        one.close();
      }
    }
  }

  private probeFor(server: ClusterServer): Probe | undefined {
    const slot = this.slots?.indexOf(server) ?? -1;
    if (slot === -1) return undefined;
    const probe = this.options.probeFor(`{${tagOfSlot(slot)}}`);
    return this.isSharded ? { ...probe, script: sharded(probe.script) } : probe;
  }

  private apply({ ranges }: Sight): void {
    const before = this.lastMasters;
    const slots: (ClusterServer | undefined)[] = [];
    for (const { from, to, master } of ranges) {
      const server = this.serverAt(master);
      for (let slot = from; slot <= to; slot++) slots[slot] = server;
    }
    const masters = mastersOf(slots);
    this.slots = slots;
    this.masters = masters;
    this.lastMasters = masters;
    this.forgetOthers();
    this.channels.follow();
    // A master that is one no longer may have had holds that its successor has not.
    if (before.some((server) => !masters.includes(server))) this.onAgain();
  }

  /** Closes connections to servers that have no slots. Whoever waits for one of these asks its successor. */
  private forgetOthers(): void {
    const needed = new Set(this.masters);
    for (const [server, until] of this.getting) {
      if (until > performance.now() && !needed.has(server)) needed.add(server);
      else this.getting.delete(server);
    }
    for (const [name, server] of this.servers) {
      if (needed.has(server)) continue;
      this.servers.delete(name);
      server.close('the server is none of the cluster any more');
    }
  }
}

const mastersOf = (slots: readonly (ClusterServer | undefined)[]): readonly ClusterServer[] =>
  [...new Set(slots)].filter((server) => server !== undefined);

const closedFailure = (): RedisFailure => new RedisFailure('the lock store is closed', 'not-executed', {});
