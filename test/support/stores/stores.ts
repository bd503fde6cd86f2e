import type { FullStore, MakeHarness, StoreTraits } from './harness.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { QuorumStore } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { quorumHarness } from './quorum.harness.js';
import { mysqlHarness, openMysql } from './mysql.harness.js';
import { openPostgres, postgresHarness } from './postgres.harness.js';
import { openZooKeeper, zookeeperHarness } from './zookeeper.harness.js';
import { memoryHarness } from './memory.harness.js';
import { redisHarness } from './redis.harness.js';

/** A store under contract. */
export interface StoreUnderContract {
  readonly name: string;
  /** Its folder under lib/stores. */
  readonly folder: string;
  readonly makeHarness: MakeHarness;
  readonly traits?: StoreTraits;
  /** Its tests are in folders `on-redis`, and not among the fast ones. */
  readonly needsServer?: true;
  /** Makes a store as an app would, on the server at the harness's address. */
  readonly open: (address?: string) => FullStore;
}

/** A store on a database. */
const DATABASE: StoreTraits = {
  hasWaitQueue: false,
  polled: true,
  seesOtherKinds: true,
  hasCounters: false,
  takesNul: false,
  kinds: ['exclusive', 'permit'],
  hasObjects: false,
};

/** Every store of the library; contract.spec.ts fails for one that is missing here. */
export const STORES: readonly StoreUnderContract[] = [
  { name: 'MemoryStore', folder: 'memory', makeHarness: memoryHarness, open: () => new MemoryStore() },
  {
    name: 'RedisStore',
    folder: 'redis',
    makeHarness: redisHarness,
    needsServer: true,
    open: (address = 'redis://127.0.0.1:1') => new RedisStore({ redis: address }),
  },
  {
    name: 'QuorumStore',
    folder: 'redis',
    makeHarness: quorumHarness,
    traits: {
      hasWaitQueue: false,
      severalNodes: true,
      kinds: ['exclusive', 'read', 'write'],
      hasObjects: false,
    },
    open: () => new QuorumStore({ nodes: [new MemoryStore(), new MemoryStore()] }) as unknown as FullStore,
  },
  {
    name: 'MysqlStore',
    folder: 'mysql',
    makeHarness: mysqlHarness,
    needsServer: true,
    traits: DATABASE,
    open: openMysql,
  },
  {
    name: 'PostgresStore',
    folder: 'postgres',
    makeHarness: postgresHarness,
    needsServer: true,
    traits: DATABASE,
    open: openPostgres,
  },
  {
    name: 'ZooKeeperStore',
    folder: 'zookeeper',
    makeHarness: zookeeperHarness,
    needsServer: true,
    traits: {
      hasSessions: true,
      hasCounters: false,
      seesOtherKinds: true,
      kinds: ['exclusive', 'permit', 'read', 'write'],
      hasObjects: false,
    },
    open: openZooKeeper,
  },
];

export const STORES_IN_MEMORY = STORES.filter(({ needsServer }) => !needsServer);
export const STORES_ON_SERVERS = STORES.filter(({ needsServer }) => needsServer);
