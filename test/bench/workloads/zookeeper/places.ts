import { tmpdir } from 'node:os';
import { ZooKeeperEnsemble } from '../../../support/servers/zookeeper-ensemble.js';
import { ZooKeeperServer, type ZooKeeperServerOptions } from '../../../support/servers/zookeeper-server.js';
import { sum } from '../../measure/statistics.js';
import { ZOOKEEPER } from '../../subjects/subject.js';

/** ZooKeeper servers of the benchmark. */
export interface BenchZooKeeper extends AsyncDisposable {
  /** URL of each server, the leader's last. */
  readonly urls: readonly string[];
  /** URL with all servers, as an app has it. */
  readonly url: string;
  /** Resolves with the number of requests that clients have sent. */
  requests(): Promise<number>;
}

/** Servers, and what the page says about them. */
export interface ZooKeeperPlace {
  /** Part of the names of workloads and files. */
  readonly id: string;
  readonly title: string;
  readonly shows: string;
  start(): Promise<BenchZooKeeper>;
}

/** Settings that ZooKeeper has by default, instead of the ones for tests. Commits wait for a disk, as they do in production. */
const OPTIONS: ZooKeeperServerOptions = {
  root: tmpdir(),
  compiles: 'well',
  tickTimeMs: 2_000,
  settings: { preAllocSize: 65_536 },
  // The server removes the empty parents of free keys once a minute: it must not do so for one contender only.
  containerCheckMs: 3_600_000,
};

const benchOn = (owner: AsyncDisposable, servers: readonly ZooKeeperServer[]): BenchZooKeeper => ({
  urls: servers.map(({ address }) => ZOOKEEPER + address),
  url: ZOOKEEPER + servers.map(({ address }) => address).join(','),
  async requests() {
    const replies = await Promise.all(servers.map((server) => server.command('mntr')));
    return sum(replies.map((reply) => Number(/zk_packets_received\s+(\d+)/.exec(reply)![1])));
  },
  [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
});

export const ONE_SERVER: ZooKeeperPlace = {
  id: 'server',
  title: 'One ZooKeeper server',
  shows: 'One ZooKeeper 3.9 on a disk, which each commit waits for.',
  async start() {
    const server = await ZooKeeperServer.start(OPTIONS);
    return benchOn(server, [server]);
  },
};

export const ENSEMBLE: ZooKeeperPlace = {
  id: 'ensemble',
  title: 'A ZooKeeper ensemble of 3',
  shows: 'Three servers of ZooKeeper 3.9 on one disk, which each commit of a majority waits for.',
  async start() {
    const ensemble = await ZooKeeperEnsemble.start(OPTIONS);
    return benchOn(ensemble, [...(await ensemble.followers()), await ensemble.leader()]);
  },
};
