import type { LockStore } from '../../../../lib/core/seam/lock-store.js';
import type { Ports, WorkerServers } from '../worker-messages.js';
import { NamedClients } from './named-clients.js';
import type { Library } from './orders.service.js';

const LOOPBACK = '127.0.0.1';

/** A worker's store, on whatever servers there are. */
export interface OpenStore {
  readonly store: LockStore;
  readonly clients: Pick<NamedClients, 'areUp' | 'listeners'>;
  /** How many channels are listened to for somebody who waits; where that can be told. */
  readonly subscriptions: number;
}

const at = (port: number): { readonly host: string; readonly port: number } => ({ host: LOOPBACK, port });

const ACCOUNT = { user: 'app', password: 'secret', database: 'app' };
/** A store on a database, or on ZooKeeper, shows none of its connections. */
const NOT_SHOWN = { clients: { areUp: true, listeners: 0 }, subscriptions: 0 };

/** Where servers are that call themselves by other ports, as ioredis wants to know it. */
const natMapOf = (nat: Ports): Record<string, { readonly host: string; readonly port: number }> =>
  Object.fromEntries(Object.entries(nat).map(([own, port]) => [`${LOOPBACK}:${own}`, at(port)]));

/** Opens the store that a worker is told of. */
export const openStore = (
  { RedisStore, QuorumStore, MysqlStore, PostgresStore, ZooKeeperStore }: Library,
  redis: WorkerServers,
  process: string,
  commandTimeoutMs: number,
): OpenStore => {
  const clients = new NamedClients(process);
  switch (redis.shape) {
    case 'mysql': {
      // The name is sent to the server, so that faults can tell connections apart.
      const options = { ...ACCOUNT, ...at(redis.port), connectAttributes: { program_name: process } };
      return { ...NOT_SHOWN, store: new MysqlStore({ options, commandTimeoutMs }) };
    }
    case 'postgres': {
      const { port, listenPort } = redis;
      const settings = { ...ACCOUNT, ...at(port), application_name: process };
      const pooled = listenPort !== undefined && {
        pooled: true,
        listenUrl: `postgres://${ACCOUNT.user}:${ACCOUNT.password}@${LOOPBACK}:${listenPort}/${ACCOUNT.database}`,
      };
      return { ...NOT_SHOWN, store: new PostgresStore({ settings, commandTimeoutMs, ...pooled }) };
    }
    case 'zookeeper': {
      const connect = redis.ports.map((port) => `${LOOPBACK}:${port}`).join(',');
      return { ...NOT_SHOWN, store: new ZooKeeperStore({ connect, commandTimeoutMs }) };
    }
    case 'one': {
      const store = new RedisStore({ redis: clients.at(at(redis.port)), commandTimeoutMs });
      return {
        store,
        clients,
        get subscriptions() {
          // One of them is the process's own, where it hears of its turns.
          return Math.max(0, store.subscriptions - 1);
        },
      };
    }
    case 'quorum': {
      const nodes = redis.ports.map(
        (port) => new RedisStore({ redis: clients.at(at(port)), commandTimeoutMs }),
      );
      const names = nodes.map((_, i) => `n${i + 1}`);
      const store = new QuorumStore({ nodes, names, delayAfterRestartMs: redis.delayAfterRestartMs });
      return {
        store,
        clients,
        get subscriptions() {
          return nodes.reduce((sum, { subscriptions }) => sum + subscriptions, 0);
        },
      };
    }
    case 'sentinel': {
      const { ports, name, nat, replicas } = redis;
      const address = { sentinels: ports.map(at), name, natMap: natMapOf(nat) };
      const store = new RedisStore({ redis: clients.at(address), commandTimeoutMs, replicas });
      return {
        store,
        clients,
        get subscriptions() {
          return Math.max(0, store.subscriptions - 1);
        },
      };
    }
    case 'cluster': {
      const { ports, nat, replicas } = redis;
      const source = { cluster: ports.map(at), natMap: natMapOf(nat), connectionName: process };
      const store = new RedisStore({ redis: source, commandTimeoutMs, replicas });
      // The channels on which it hears of its turns, one for each slot where somebody has waited, are kept for the next.
      return { store, clients, subscriptions: 0 };
    }
  }
};
