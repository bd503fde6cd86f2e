import type { RedisLockModuleOptions } from 'nest-redis-lock';
import { MysqlStore } from 'nest-redis-lock/mysql';
import { PostgresStore } from 'nest-redis-lock/postgres';
import { RedisStore } from 'nest-redis-lock/redis';
import { MemoryStore } from 'nest-redis-lock/testing';
import { ZooKeeperStore } from 'nest-redis-lock/zookeeper';

interface Address {
  /** Address of the server, or servers; empty for a store without one. */
  readonly url: string;
  /** Prefix of every table name, and name of the node that contains the locks in ZooKeeper. */
  readonly namespace: string;
  readonly commandTimeoutMs?: number;
}
type StoreOptions = Pick<RedisLockModuleOptions, 'redis' | 'store'>;

/** Returns the name of the table with the locks, for stores in a database. */
export const lockTable = (namespace: string): string => `${namespace}_locks`;

/** Name of the app in the address of an embedded PostgreSQL, whose connections share one session. */
export const EMBEDDED = 'embedded';

/** The options of the module that say where the locks are, by store. */
const OPTIONS = {
  redis: ({ url, commandTimeoutMs }: Address) => ({
    store: new RedisStore({ redis: url, commandTimeoutMs }),
  }),
  mysql: ({ url: uri, namespace, commandTimeoutMs }: Address) => ({
    store: new MysqlStore({ uri, table: lockTable(namespace), commandTimeoutMs, migrate: 'on start' }),
  }),
  postgres: ({ url, namespace, commandTimeoutMs }: Address) => ({
    store: new PostgresStore({
      ...{ connectionString: url, table: lockTable(namespace), commandTimeoutMs, migrate: 'on start' },
      pooled: new URL(url).searchParams.get('application_name') === EMBEDDED,
    }),
  }),
  zookeeper: ({ url: connect, namespace, commandTimeoutMs }: Address) => ({
    store: new ZooKeeperStore({ connect, basePath: `/${namespace}`, commandTimeoutMs }),
  }),
  memory: () => ({ store: new MemoryStore() }),
} satisfies Record<string, (address: Address) => StoreOptions>;

/** What can keep the locks. */
export type StoreName = keyof typeof OPTIONS;
export const STORE_NAMES = Object.keys(OPTIONS) as readonly StoreName[];

export const isStoreName = (name: string): name is StoreName => Object.hasOwn(OPTIONS, name);

/** Stores with read-write locks. */
const WITH_READERS: readonly string[] = ['redis', 'zookeeper', 'memory'] satisfies readonly StoreName[];
export const hasReaders = (store: string): boolean => WITH_READERS.includes(store);

/** Stores with permits. */
const WITH_PERMITS: readonly string[] = [
  'redis',
  'mysql',
  'postgres',
  'memory',
] satisfies readonly StoreName[];
export const hasPermits = (store: string): boolean => WITH_PERMITS.includes(store);

/** Where the locks are. */
export interface LockPlace extends Address {
  readonly store: StoreName;
}

export const lockOptions = (place: LockPlace): StoreOptions => OPTIONS[place.store](place);
