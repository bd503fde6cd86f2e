import { setTimeout as sleep } from 'node:timers/promises';
import { LockManager } from '../../../../lib/core/service/lock-manager.js';
import type { LockStore } from '../../../../lib/core/seam/lock-store.js';
import {
  resolveOptions,
  type RedisLockModuleOptions,
} from '../../../../lib/nest/module/redis-lock.options.js';
import * as redisStores from '../../../../lib/entries/redis.js';
import { storeOn } from '../../../../lib/nest/module/store-of-options.js';
import { MysqlStore } from '../../../../lib/stores/mysql/mysql.store.js';
import { PostgresStore } from '../../../../lib/stores/postgres/postgres.store.js';
import { ZooKeeperStore } from '../../../../lib/stores/zookeeper/zookeeper.store.js';
import { overload, type Overloaded, type OverloadPlan, type OverloadRun } from '../overload.js';
import { MysqlLab } from '../../../support/mysql/mysql-lab.js';
import { PostgresLab } from '../../../support/postgres/postgres-lab.js';
import { RedisClusterServers } from '../../../support/servers/redis-cluster.js';
import { RedisServer } from '../../../support/servers/redis-server.js';
import { rowName, type SqlLab } from '../../../support/sql/sql-lab.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { ZooKeeperServer } from '../../../support/servers/zookeeper-server.js';

/** Isolation of the transaction that locks rows. The store sets its own. */
export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ';

/** The real time. */
const TIMELINE: Overloaded['agenda'] = {
  get now() {
    return performance.now();
  },
  at: (time, what) => setTimeout(what, time - performance.now()),
  pass: async (until, isOver = () => false) => {
    while (performance.now() < until && !isOver()) await sleep(20);
  },
};
const PROCESS: Overloaded['process'] = { arrive: (what) => what() };

/** Runs a plan with default options. The store itself says which keys are held. */
const runOn = async (
  store: LockStore,
  plan: OverloadPlan,
  lockRows?: Overloaded['lockRows'],
): Promise<OverloadRun> => {
  const { settings } = resolveOptions({ store, shutdownGraceMs: 0, holderInfo: false });
  const manager = new LockManager(store, settings, { log: () => undefined, warn: () => undefined });
  const heldKeys = async (): Promise<readonly string[]> => {
    const { keyPrefix: prefix } = settings;
    const keys: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.list!({ prefix, cursor });
      keys.push(...page.keys.map(({ finalKey }) => finalKey.slice(prefix.length)));
      ({ cursor } = page);
    } while (cursor !== undefined);
    return keys;
  };
  try {
    return await overload(
      { agenda: TIMELINE, process: PROCESS, manager, heldKeys, ...(lockRows && { lockRows }) },
      plan,
    );
  } finally {
    await manager.close();
  }
};

/** Opens the way to a server, with the latency of a plan. */
const wayTo = async (server: { readonly port: number }, { latencyMs }: OverloadPlan): Promise<TcpProxy> => {
  const proxy = await TcpProxy.start(server);
  proxy.delay(latencyMs);
  return proxy;
};

const onRedis = (options: RedisLockModuleOptions, plan: OverloadPlan): Promise<OverloadRun> =>
  runOn(storeOn(redisStores, resolveOptions(options)), plan);

const onSql = async (
  lab: SqlLab,
  plan: OverloadPlan,
  open: (uri: string) => LockStore,
): Promise<OverloadRun> => {
  await using proxy = await wayTo(lab.server, plan);
  const lockRows = (keys: readonly string[], until: number): void => {
    // One by one: a database may read a small table as a whole, and then lock all of it.
    const rows = keys.map(
      (key) => `SELECT * FROM nest_lock WHERE name = '${rowName(key)}' AND member = '' FOR UPDATE`,
    );
    void lab
      .transaction(rows.join('; '))
      .then((foreign) => TIMELINE.at(until, () => void foreign[Symbol.asyncDispose]()));
  };
  return await runOn(open(lab.uriThrough(proxy)), plan, lockRows);
};

/** Runs a plan on a server of its own. */
export const ON_SERVERS: Readonly<
  Record<string, (plan: OverloadPlan, isolation?: Isolation) => Promise<OverloadRun>>
> = {
  Redis: async (plan) => {
    await using server = await RedisServer.start();
    await using proxy = await wayTo(server, plan);
    return await onRedis({ redis: `redis://${proxy.host}:${proxy.port}` }, plan);
  },
  Cluster: async (plan) => {
    await using servers = await RedisClusterServers.start({ replicas: false });
    return await onRedis({ redis: servers.options }, plan);
  },
  'a quorum': async (plan) => {
    const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
    try {
      const nodes = servers.map(({ url }) => new redisStores.RedisStore({ redis: url }));
      return await onRedis({ store: new redisStores.QuorumStore({ nodes, delayAfterRestartMs: 0 }) }, plan);
    } finally {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
    }
  },
  PostgreSQL: async (plan, isolation = 'READ COMMITTED') => {
    await using lab = await PostgresLab.start();
    await lab.query(`ALTER DATABASE app SET default_transaction_isolation = '${isolation}'`);
    return await onSql(lab, plan, (connectionString) => new PostgresStore({ connectionString }));
  },
  MySQL: async (plan, isolation = 'READ COMMITTED') => {
    await using lab = await MysqlLab.start();
    await lab.query(`SET GLOBAL TRANSACTION ISOLATION LEVEL ${isolation}`);
    return await onSql(lab, plan, (uri) => new MysqlStore({ uri }));
  },
  ZooKeeper: async (plan) => {
    await using server = await ZooKeeperServer.start();
    await using proxy = await wayTo(server, plan);
    return await runOn(new ZooKeeperStore({ connect: `${proxy.host}:${proxy.port}` }), plan);
  },
};
