import type { Workload } from '../workload.js';
import { awaitRelease } from './await-release.js';
import { callers } from './callers.js';
import { cluster } from './cluster.js';
import { cpuTime } from './cpu-time.js';
import { cycles } from './cycles.js';
import { decorator } from './decorator.js';
import { footprint } from './footprint.js';
import { freeKeys } from './free-keys.js';
import { heldLeases } from './held-leases.js';
import { hotKey } from './hot-key.js';
import { idleListener } from './idle-listener.js';
import { keys } from './keys.js';
import { leases } from './leases.js';
import { memory } from './memory.js';
import { network } from './network.js';
import { paced } from './paced.js';
import { processes } from './processes.js';
import { quorumDead } from './quorum/dead.js';
import { quorumFar } from './quorum/far.js';
import { quorumFree } from './quorum/free.js';
import { quorumHot } from './quorum/hot.js';
import { readWrite } from './read-write.js';
import { scale } from './scale.js';
import { semaphore } from './semaphore.js';
import { sqlCrowd } from './sql/crowd.js';
import { sqlFree } from './sql/free.js';
import { sqlHot } from './sql/hot.js';
import { MYSQL } from './sql/mysql.js';
import { POSTGRES } from './sql/postgres.js';
import { stores } from './stores.js';
import { waiting } from './waiting.js';
import { wakeUp } from './wake-up.js';
import { zookeeperFree } from './zookeeper/free.js';
import { zookeeperHot } from './zookeeper/hot.js';
import { ENSEMBLE, ONE_SERVER } from './zookeeper/places.js';

/**
 * All workloads, in the order of the report: what users have comes first, sections that do nothing come last, and
 * after them what is measured of this library alone.
 */
export const workloads: readonly Workload[] = [
  ...[hotKey, paced, wakeUp, callers, keys, leases, processes, network, memory],
  ...[readWrite, semaphore],
  ...[waiting, freeKeys],
  ...[quorumFree, quorumHot, quorumFar, quorumDead, cluster],
  ...[MYSQL, POSTGRES].flatMap((entrants) => [sqlFree(entrants), sqlHot(entrants), sqlCrowd(entrants)]),
  ...[ONE_SERVER, ENSEMBLE].flatMap((place) => [zookeeperFree(place), zookeeperHot(place)]),
  stores,
  ...[cpuTime, idleListener, decorator, awaitRelease, heldLeases, scale, footprint, cycles],
];

/** What most users have, and what the project measures itself by: `--only targets`. */
export const targets: readonly Workload[] = workloads.filter(
  (one) =>
    [hotKey, wakeUp, processes, waiting, freeKeys, quorumFree, cpuTime, decorator, footprint].includes(one) ||
    /^sql-.*-(free|crowd)$/.test(one.name),
);
