import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { Runtime } from '../../../lib/core/util/runtime.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { DEFAULT_SETTINGS } from '../../../lib/core/settings/lock-settings.js';
import type { NodeStore } from '../../../lib/stores/redis/quorum/node-store.js';
import { QuorumStore } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { ZooKeeperStore } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { SimClient } from '../client/sim-client.js';
import { Agenda } from '../engine/agenda.js';
import { Chronicle } from '../engine/chronicle.js';
import { Random } from '../engine/random.js';
import { SimProcess } from '../engine/sim-process.js';
import { Link } from '../network/link.js';
import { CORE } from '../core-api.js';
import { KEY_PREFIX, plainKey } from '../server/recorder.js';
import { SimServer } from '../server/sim-server.js';
import { withServer } from '../server/spare-servers.js';
import { SimDatabase } from '../sql/sim-database.js';
import { machineOf, SQL_PARTS } from '../sql/simulate-sql.js';
import type { SqlMode } from '../sql/sql-plan.js';
import { SimEnsemble } from '../zookeeper/sim-ensemble.js';
import { ZkLink } from '../zookeeper/zk-link.js';
import { overload, type OverloadPlan, type OverloadRun } from './overload.js';

/** The default of all stores. */
const TIMEOUT_MS = 2_000;

const runtimeOf = (agenda: Agenda): SimProcess => {
  const process = new SimProcess('p', agenda, new Chronicle(), new Random('timers'), 1, false);
  process.dice = new Random('chance');
  return process;
};

const managerOf = (store: LockStore, keyPrefix: string, runtime: Runtime): LockManager => {
  const settings = { ...DEFAULT_SETTINGS, keyPrefix, shutdownGraceMs: 0, holderInfo: false };
  return new LockManager(store, settings, { log: () => undefined, warn: () => undefined }, runtime);
};

const onSql =
  (mode: SqlMode) =>
  (plan: OverloadPlan): Promise<OverloadRun> => {
    const agenda = new Agenda();
    const { latencyMs, serviceMs } = plan;
    const lockWaitMs = mode === 'polling' ? 1_000 : 200;
    const rules = { lockWaitMs, statementMs: TIMEOUT_MS * 0.9, serviceMs };
    const database = new SimDatabase(agenda, new Random('server'), 1, rules, () => undefined);
    const { watchdogMs } = DEFAULT_SETTINGS;
    const machine = machineOf(
      {
        ...{ mode, pooled: false, commandTimeoutMs: TIMEOUT_MS, watchdogMs, seed: 1, lanes: 4 },
        latencyMs: [latencyMs, latencyMs],
      },
      SQL_PARTS,
      { agenda, database, name: 'p', rate: 1, saw: () => undefined },
    );
    const heldKeys = (): readonly string[] => {
      const now = database.table.now();
      return [...database.table.rows].flatMap(([key, { until }]) => (until > now ? [key] : []));
    };
    const lockRows = (keys: readonly string[], until: number): void => {
      for (const key of keys) database.lockRow(key, until);
    };
    return overload({ ...machine, agenda, heldKeys, lockRows }, plan);
  };

/** A process whose store is on one Redis server, or on a quorum of several. */
const onRedis =
  (nodes: number) =>
  (plan: OverloadPlan): Promise<OverloadRun> => {
    const agenda = new Agenda();
    const process = runtimeOf(agenda);
    const servers: SimServer[] = [];
    const storeOn = (server: SimServer): NodeStore => {
      const link = (role: string): Link =>
        new Link(agenda, process, server, new Random(role), [plan.latencyMs, plan.latencyMs], TIMEOUT_MS);
      const redis = (role: string, options: object): SimClient => new SimClient(process, link(role), options);
      const store: NodeStore = new RedisStore({ redis, runtime: process });
      // All simulated servers say that they are the same one, at one address.
      return nodes === 1 ? store : Object.assign(store, { serverTimes: undefined, address: undefined });
    };
    const run = (): Promise<OverloadRun> => {
      const [first, ...others] = servers.map(storeOn) as [NodeStore, ...NodeStore[]];
      const quorum = { nodes: [first, ...others], runtime: process, delayAfterRestartMs: 0 };
      const manager = managerOf(others.length > 0 ? new QuorumStore(quorum) : first, KEY_PREFIX, process);
      const heldKeys = (): string[] =>
        servers.flatMap((server) => server.owners.map(([key]) => plainKey(key)));
      // Each new connection loads all scripts first.
      const slow = (): void => servers.forEach((server) => server.slow(plan.serviceMs, Infinity));
      const begin = (): void => void agenda.at(agenda.now + (plan.slowAfterMs ?? 0), slow);
      return overload({ agenda, process, manager, heldKeys, begin }, plan);
    };
    const withServers = (left: number): Promise<OverloadRun> =>
      left === 0
        ? run()
        : withServer(async (borrowed) => {
            const server = new SimServer(agenda, new Chronicle(), true, CORE, borrowed);
            servers.push(server);
            const result = await withServers(left - 1);
            server.close();
            return result;
          });
    return withServers(nodes);
  };

const onZooKeeper = ({ serviceMs, ...plan }: OverloadPlan): Promise<OverloadRun> => {
  const agenda = new Agenda();
  const process = runtimeOf(agenda);
  const saw = (): void => undefined;
  const { watchdogMs } = DEFAULT_SETTINGS;
  const ensemble = new SimEnsemble({
    ...{ agenda, random: new Random('ensemble'), servers: 1, rate: 1, reportMs: 1_000, sweepMs: 60_000 },
    ...{ sessionMs: watchdogMs, tellsLate: false, serviceMs, saw },
  });
  const latencyMs = [plan.latencyMs, plan.latencyMs] as const;
  const { dialers } = new ZkLink({ process, ensemble, agenda, random: new Random('link'), latencyMs, saw });
  const store = new ZooKeeperStore({ connect: 'simulated:2181', runtime: process, dialers });
  const manager = managerOf(store, '', process);
  const heldKeys = (): string[] => ensemble.tree.ephemerals.map(([path]) => path.split('/').at(-2)!);
  return overload({ agenda, process, manager, heldKeys }, { serviceMs, ...plan });
};

export const SUBJECTS: Readonly<Record<string, (plan: OverloadPlan) => Promise<OverloadRun>>> = {
  PostgreSQL: onSql('notifications'),
  MySQL: onSql('polling'),
  Redis: onRedis(1),
  'a quorum': onRedis(3),
  ZooKeeper: onZooKeeper,
};
