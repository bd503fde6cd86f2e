import { parseNode } from '../../../../lib/stores/zookeeper/lock-nodes.js';
import { until } from '../../../support/async.js';
import { ZooKeeperEnsemble } from '../../../support/servers/zookeeper-ensemble.js';
import type { ZooKeeperServer } from '../../../support/servers/zookeeper-server.js';
import type { Probe } from '../database.js';
import type { KeptHold, KeptHolds } from '../kept-holds.js';
import { PeerNetwork } from './peer-network.js';

const SIZE = 3;
const MAJORITY = 2;
/** An election takes a second, on a busy machine several. */
const SERVES_WITHIN_MS = 60_000;
/** Silent servers are given up after 15 ticks. That is longer than the margin of a session, as operators may set it. */
const TICKS = { tickTimeMs: 200, settings: { syncLimit: 15 } };
/** Servers that have no leader ask the others each second at least. By default they do so each minute in the end. */
const ELECTIONS = { 'zookeeper.fastleader.maxNotificationInterval': 1_000 };

/** The lines of `dump` with a session, and with a node that ends with one. */
const SESSION = /^\t0x[\da-f]+$/gm;
const NODE = /^\t\/locks\/(?!%nest-redis-lock\/)(.+)\/([^/\n]+)$/gm;
/** Sessions that watch one path, in the reply to `wchp`. Notes of processes are no part of a lock. */
const WATCHED = /^\/(?!.*%nest-redis-lock\/).*\n((?:\t.*\n)*)/gm;

/** Three ZooKeeper servers and the network between them, as faults know them. */
export class Ensemble implements KeptHolds, AsyncDisposable {
  readonly shape = 'zookeeper';

  private constructor(
    private readonly ensemble: ZooKeeperEnsemble,
    private readonly network: PeerNetwork,
  ) {}

  static async start(): Promise<Ensemble> {
    const network = await PeerNetwork.start(SIZE);
    try {
      const ensemble = await ZooKeeperEnsemble.start((id) => ({
        ...TICKS,
        properties: { ...ELECTIONS, ...network.propertiesOf(id - 1) },
      }));
      return new Ensemble(ensemble, network);
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  }

  get servers(): readonly ZooKeeperServer[] {
    return this.ensemble.servers;
  }

  /** Numbers of the servers from 0: the leader first. */
  async leaderFirst(): Promise<readonly number[]> {
    const leader = this.servers.indexOf(await this.ensemble.leader());
    return [leader, ...this.servers.map((_, number) => number).filter((number) => number !== leader)];
  }

  /** Nothing gets through between this server and the other servers, until {@link served}. */
  isolate(number: number): void {
    this.network.isolate(number, this.servers[number]!.peerPorts);
  }

  /** Ends every fault, and resolves when all servers serve. */
  async served(): Promise<void> {
    this.network.restore();
    for (const server of this.servers) {
      if (server.isPaused) await server.kill('SIGCONT');
      else if (!server.isRunning) await server.restart();
    }
    await this.ensemble.ready();
  }

  /** A client that asks for the state of all servers. It has no answer before a majority serves. */
  async probe(): Promise<Probe> {
    let isClosed = false;
    const serves = async (): Promise<boolean> => {
      const modes = await Promise.all(
        this.servers.map(async (one) => (one.isPaused ? undefined : one.mode())),
      );
      return isClosed || modes.filter(Boolean).length >= MAJORITY;
    };
    return {
      ask: async () => void (await until(serves, { timeoutMs: SERVES_WITHIN_MS })),
      close: () => (isClosed = true),
    };
  }

  /** The nodes of locks: of holders, and of waiting claims. */
  async holds(): Promise<readonly KeptHold[]> {
    const dump = await (await this.ensemble.leader()).command('dump');
    return [...dump.matchAll(NODE)].map(([, segment, name]) => ({
      key: decodeURIComponent(segment!),
      owner: parseNode(name!)?.owner ?? name!,
    }));
  }

  async sessions(): Promise<number> {
    const dump = await (await this.ensemble.leader()).command('dump');
    return new Set(dump.match(SESSION)).size;
  }

  async watches(): Promise<number> {
    const replies = await Promise.all(this.servers.map((server) => server.command('wchp')));
    const watchers = replies.flatMap((reply) =>
      [...reply.matchAll(WATCHED)].map(([, sessions]) => sessions!),
    );
    return watchers.reduce((sum, sessions) => sum + sessions.split('\n').length - 1, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.ensemble.stop();
    await this.network[Symbol.asyncDispose]();
  }
}
