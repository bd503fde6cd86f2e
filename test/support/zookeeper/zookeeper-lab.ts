import { connect } from 'node:net';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { create, getChildren, PERSISTENT, remove } from '../../../lib/stores/zookeeper/requests.js';
import type { ZkRequest } from '../../../lib/stores/zookeeper/requests.js';
import { grantOf, ZkConnection, type SessionGrant } from '../../../lib/stores/zookeeper/zk-connection.js';
import { ZkSession } from '../../../lib/stores/zookeeper/zk-session.js';
import { dialerOf } from '../../../lib/stores/zookeeper/zookeeper-options.js';
import { ZooKeeperStore, type ZooKeeperStoreOptions } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { until } from '../async.js';
import { openLocksOn, type OpenLocksOn, type StoreLocksOptions } from '../stores/open-locks-on.js';
import { TcpProxy } from '../tcp-proxy.js';
import { ZooKeeperEnsemble } from '../servers/zookeeper-ensemble.js';
import { ZooKeeperServer, type ZooKeeperServerOptions } from '../servers/zookeeper-server.js';

const OPEN = [{ rights: 31, scheme: 'world', id: 'anyone' }];

/** A request that the store never sends. */
const SET_ACL = 7;
const ANY_VERSION = -1;

let keys = 0;

/** Returns a key that no other test of this file uses. */
export const newKey = (name = 'key'): string => `${name}-${(keys += 1)}`;

/** Path of a key's lock, with the default prefix. */
export const pathOf = (key: string): string => `/locks/lock:${key}`;

/** The session that a client has through a proxy. */
class SessionThrough {
  private hello: SessionGrant | undefined;

  /** Call it before the client connects. */
  constructor(proxy: TcpProxy) {
    proxy.onData((_, direction, chunk) => {
      if (direction === 'toClient') this.hello ??= grantOf(chunk.subarray(4));
    });
  }

  /** Ends it, as another client of the same session would. */
  async end({ host, port }: ZooKeeperServer): Promise<void> {
    const client = {
      runtime: systemRuntime(),
      heard: () => undefined,
      changed: () => undefined,
      expired: () => undefined,
      ended: () => undefined,
    };
    const limits = { timeoutMs: 10_000, signal: new AbortController().signal };
    const hello = { ...this.hello!, lastSeen: 0n };
    // Its other client takes it back when it connects again, before it has ended.
    const isOver = async (): Promise<boolean> => {
      const { connection, granted } = await ZkConnection.open(connect({ host, port }), hello, client, limits);
      await connection.closeSession(performance.now() + 10_000).catch(() => undefined);
      connection.destroy(new Error('the test ends the session'));
      return granted.timeoutMs <= 0;
    };
    await until(() => isOver().catch(() => false), { what: 'the session is over' });
  }
}

/** One ZooKeeper server, or an ensemble. What was opened through it ends with it. */
export class ZooKeeperLab implements AsyncDisposable {
  private readonly opened: AsyncDisposable[] = [];
  private readonly admin: ZkSession;

  private constructor(
    readonly servers: readonly ZooKeeperServer[],
    readonly ensemble: ZooKeeperEnsemble | undefined,
  ) {
    this.admin = new ZkSession({
      runtime: systemRuntime(),
      servers: servers.map((server) => dialerOf(server, undefined)),
      auth: () => [],
      commandTimeoutMs: 10_000,
    });
  }

  static async start(options?: ZooKeeperServerOptions): Promise<ZooKeeperLab> {
    return new ZooKeeperLab([await ZooKeeperServer.start(options)], undefined);
  }

  static async startEnsemble(options?: ZooKeeperServerOptions): Promise<ZooKeeperLab> {
    const ensemble = await ZooKeeperEnsemble.start(options);
    return new ZooKeeperLab(ensemble.servers, ensemble);
  }

  get server(): ZooKeeperServer {
    return this.servers[0]!;
  }

  get connect(): string {
    return this.servers.map(({ address }) => address).join(',');
  }

  /** A store as another process would have it. */
  store(options?: Partial<ZooKeeperStoreOptions>): ZooKeeperStore {
    const store = new ZooKeeperStore({ connect: this.connect, ...options });
    this.track({ [Symbol.asyncDispose]: () => store.close() });
    return store;
  }

  /** A lock service as another process would have it. */
  open(options?: StoreLocksOptions, storeOptions?: Partial<ZooKeeperStoreOptions>): OpenLocksOn {
    const store = new ZooKeeperStore({ connect: this.connect, ...storeOptions });
    return this.track(openLocksOn(store, options));
  }

  sessionThrough(proxy: TcpProxy): SessionThrough {
    return new SessionThrough(proxy);
  }

  /** A proxy before a server. */
  async proxy(server = this.server): Promise<TcpProxy & { readonly address: string }> {
    const proxy = this.track(await TcpProxy.start(server));
    return Object.assign(proxy, { address: `${proxy.host}:${proxy.port}` });
  }

  /** Sends a request as the administrator. */
  ask<T>(request: ZkRequest<T>): Promise<T> {
    return this.admin.request(request);
  }

  createNode(path: string, acls = OPEN): Promise<unknown> {
    return this.ask(create(path, PERSISTENT, acls));
  }

  deleteNode(path: string): Promise<void> {
    return this.ask(remove(path));
  }

  /** Sets what all clients may do with a node. */
  setRights(path: string, rights: number): Promise<void> {
    return this.ask({
      op: SET_ACL,
      write: (to) =>
        void to
          .text(path)
          .list([rights], (one) => to.int(one).text('world').text('anyone'))
          .int(ANY_VERSION),
      read: () => undefined,
    });
  }

  /** Names of the children of a node, none for one that does not exist. */
  children(path: string): Promise<readonly string[]> {
    return this.ask(getChildren(path)).catch(() => []);
  }

  /** Names of the nodes of a key's lock, in the order of their numbers. */
  async nodes(key: string): Promise<readonly string[]> {
    const names = await this.children(pathOf(key));
    return names.toSorted((a, b) => Number(a.slice(-10)) - Number(b.slice(-10)));
  }

  /** Resolves when a lock has this number of nodes: its holder, and its waiters. */
  async nodesAre(key: string, count: number): Promise<void> {
    await until(async () => (await this.nodes(key)).length === count, { what: `${key} has ${count} nodes` });
  }

  /** Resolves when a service has heard that its claim is queued: it watches the node of the holder. */
  async isQueued(key: string, { locks }: OpenLocksOn): Promise<void> {
    await this.nodesAre(key, 2);
    const [holder] = await this.nodes(key);
    // Each server knows the watches of its own clients.
    const watchers = async (): Promise<number> => {
      const replies = await Promise.all(this.servers.map((server) => server.command('wchp')));
      const sessions = replies.map((reply) => reply.split(`${pathOf(key)}/${holder}\n`)[1] ?? '');
      return sessions.reduce((sum, one) => sum + /^(?:\t.*\n)*/.exec(one)![0].split('\n').length - 1, 0);
    };
    // The holder watches its node, too.
    await until(async () => (await watchers()) === 2, { what: `a claim of ${key} is queued` });
    // A reply to a later request.
    await locks.ping();
  }

  /** Number of sessions that the server has. */
  async sessions(): Promise<number> {
    return Number(/zk_global_sessions\s+(\d+)/.exec(await this.server.command('mntr'))![1]);
  }

  /** Resolves when the services and the server keep nothing. */
  async nothingLeft(...services: readonly OpenLocksOn[]): Promise<void> {
    for (const { locks } of services) {
      await until(() => Object.values(locks.usage).every((size) => size === 0), {
        what: 'the service keeps nothing',
      });
    }
    // Notes of processes stay until their session ends.
    const ephemerals = async (): Promise<readonly string[]> =>
      [...(await this.server.command('dump')).matchAll(/^\t(\/.*)$/gm)]
        .map(([, path]) => path!)
        .filter((path) => !path.includes('/%nest-redis-lock/'));
    await until(async () => (await ephemerals()).length === 0, { what: 'no node of a lock is left' });
  }

  /** Ends `one` with the test. */
  track<T extends AsyncDisposable>(one: T): T {
    this.opened.push(one);
    return one;
  }

  /** Ends what the last test opened, newest first. */
  async reset(): Promise<void> {
    for (const one of this.opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reset();
    await this.admin.close({ keepsNodes: false });
    await (this.ensemble ?? this.server).stop();
  }
}
