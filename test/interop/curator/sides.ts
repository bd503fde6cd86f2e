import { openLocksOn, type OpenLocksOn, type StoreLocksOptions } from '../../support/stores/open-locks-on.js';
import { Curator, type CuratorOptions } from '../../support/curator/curator.js';
import { ZooKeeperEnsemble } from '../../support/servers/zookeeper-ensemble.js';
import { ZooKeeperServer } from '../../support/servers/zookeeper-server.js';
import { ZooKeeperStore, type ZooKeeperStoreOptions } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { until } from '../../support/async.js';

const COMPLAINT = / (WARN|ERROR) /;

export interface NodeOptions extends StoreLocksOptions {
  readonly store?: Omit<ZooKeeperStoreOptions, 'connect'>;
}

/** Where ZooKeeper is. */
type Service = ZooKeeperServer | ZooKeeperEnsemble;

/**
 * ZooKeeper, and processes of Java and sessions of Node around it that end with it. That end fails if the log of a Curator
 * has a warning or an error, except in tests that cut connections.
 *
 * The key of a lock in Node is its path.
 */
export class CuratorSides<S extends Service = ZooKeeperServer> implements AsyncDisposable {
  private readonly curators: Curator[] = [];
  private readonly services: OpenLocksOn[] = [];

  private constructor(
    readonly server: S,
    private readonly cutsConnections: boolean,
  ) {}

  static async start(): Promise<CuratorSides> {
    return new CuratorSides(await ZooKeeperServer.start(), false);
  }

  /** On an ensemble, for tests that end its servers. */
  static async onEnsemble(): Promise<CuratorSides<ZooKeeperEnsemble>> {
    return new CuratorSides(await ZooKeeperEnsemble.start(), true);
  }

  /** Connect string. */
  get connect(): string {
    const { server } = this;
    return server instanceof ZooKeeperServer ? server.address : server.addresses;
  }

  async java(options?: CuratorOptions): Promise<Curator> {
    const java = await Curator.start(this.connect, options);
    this.curators.push(java);
    return java;
  }

  /** A lock service with a session of its own, as another process would have it. */
  node({ store, ...options }: NodeOptions = {}): OpenLocksOn {
    const path = (key: string) => key;
    const zookeeper = new ZooKeeperStore({ connect: this.connect, path, ...store });
    const opened = openLocksOn(zookeeper, { keyPrefix: '', waitMs: 20_000, ...options });
    this.services.push(opened);
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.services.splice(0).reverse()) await one[Symbol.asyncDispose]();
    const curators = this.curators.splice(0).reverse();
    for (const one of curators) await one[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
    if (this.cutsConnections) return;
    for (const { log } of curators) {
      if (COMPLAINT.test(log)) throw new Error(`Curator complains:\n${log}`);
    }
  }
}

/** Resolves when a client watches a node: it sleeps until the node is deleted. */
export const watched = (server: ZooKeeperServer, node: string): Promise<unknown> =>
  until(async () => (await server.command('wchp')).includes(`${node}\n`), { what: `${node} is watched` });

/**
 * Resolves with the paths of the holders and waiters of a lock as Java lists them, once there are this many. With a kind,
 * Java lists the readers only, or the writers only. Without one it lists all nodes of the path.
 */
export const participants = (
  java: Curator,
  { name, count, kind }: { readonly name: string; readonly count: number; readonly kind?: 'read' | 'write' },
): Promise<readonly string[]> =>
  until(
    async () => {
      const listed = java.send('participants', { name, thread: 'observer', ...(kind && { kind }) });
      // The server removes an empty container.
      const nodes = await listed.catch((error: unknown) => {
        if (String(error).includes('NoNode')) return [];
        throw error;
      });
      return nodes.length === count && nodes;
    },
    { what: `Java lists ${count} participants of ${name}` },
  );
