import { until } from '../async.js';
import { freePort } from '../loopback.js';
import type { MemberPorts } from './zookeeper-configuration.js';
import { startOnFreePorts } from './server-process.js';
import { ZooKeeperServer, type ZooKeeperServerOptions } from './zookeeper-server.js';

const SIZE = 3;
const MAJORITY = 2;
/** An election takes a second, on a busy machine several. */
const SETTLED_MS = 60_000;

/** Options of all servers, or of each by its number from 1. */
export type EnsembleOptions = ZooKeeperServerOptions | ((id: number) => ZooKeeperServerOptions);

/**
 * Three ZooKeeper servers of one test that elect a leader.
 *
 * @example
 * await using ensemble = await ZooKeeperEnsemble.start();
 * const leader = await ensemble.leader();
 * await leader.kill('SIGKILL');
 * await ensemble.ready();
 */
export class ZooKeeperEnsemble implements AsyncDisposable {
  private constructor(readonly servers: readonly ZooKeeperServer[]) {}

  /** Starts the servers and resolves once all of them serve requests. */
  static async start(options: EnsembleOptions = {}): Promise<ZooKeeperEnsemble> {
    return startOnFreePorts(
      () => ZooKeeperEnsemble.prepare(options),
      (ensemble) => ensemble.launch(),
    );
  }

  private static async prepare(options: EnsembleOptions): Promise<ZooKeeperEnsemble> {
    const members: MemberPorts[] = [];
    for (let i = 0; i < SIZE; i++)
      members.push({ client: await freePort(), quorum: await freePort(), election: await freePort() });
    const servers: ZooKeeperServer[] = [];
    for (let id = 1; id <= SIZE; id++) {
      const own = typeof options === 'function' ? options(id) : options;
      servers.push(await ZooKeeperServer.prepare(own, { id, members }));
    }
    return new ZooKeeperEnsemble(servers);
  }

  /** Connect string: the addresses of all servers. */
  get addresses(): string {
    return this.servers.map(({ address }) => address).join(',');
  }

  /** Resolves with the leader, once exactly one server says that it leads and a majority serves requests. */
  async leader(): Promise<ZooKeeperServer> {
    return until(async () => this.leaderOf(await this.modes(), MAJORITY), {
      timeoutMs: SETTLED_MS,
      what: 'the ensemble has a leader',
    });
  }

  /** Resolves with the servers that follow the leader. */
  async followers(): Promise<readonly ZooKeeperServer[]> {
    const leader = await this.leader();
    return this.awake.filter((server) => server !== leader);
  }

  /** Resolves once one running server leads and all others follow. A paused server does not count. */
  async ready(): Promise<void> {
    await until(async () => this.leaderOf(await this.modes(), this.awake.length), {
      timeoutMs: SETTLED_MS,
      what: 'all running servers of the ensemble serve requests',
    });
  }

  /** Ends the servers and removes their files. Safe to call twice. */
  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private async launch(): Promise<void> {
    const started = await Promise.allSettled(this.servers.map((server) => server.restart()));
    for (const one of started) if (one.status === 'rejected') throw one.reason;
    // A member whose port for elections is in use replies at first, and ends after seconds.
    const ended = (): ZooKeeperServer | undefined => this.servers.find(({ isRunning }) => !isRunning);
    await until(async () => ended() ?? this.leaderOf(await this.modes(), SIZE), {
      timeoutMs: SETTLED_MS,
      what: 'all servers of the ensemble serve requests',
    });
    const dead = ended();
    if (dead) throw dead.endedEarly();
  }

  private get awake(): readonly ZooKeeperServer[] {
    return this.servers.filter(({ isRunning, isPaused }) => isRunning && !isPaused);
  }

  private async modes(): Promise<ReadonlyMap<ZooKeeperServer, string>> {
    const replies = await Promise.all(
      this.awake.map(async (server) => [server, await server.mode()] as const),
    );
    return new Map(replies.flatMap(([server, mode]) => (mode ? [[server, mode] as const] : [])));
  }

  private leaderOf(
    modes: ReadonlyMap<ZooKeeperServer, string>,
    atLeast: number,
  ): ZooKeeperServer | undefined {
    const leaders = [...modes].flatMap(([server, mode]) => (mode === 'leader' ? [server] : []));
    return leaders.length === 1 && modes.size >= atLeast ? leaders[0] : undefined;
  }
}
