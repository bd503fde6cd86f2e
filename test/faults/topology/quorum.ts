import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { acceptsWrites, type BareConnections } from '../apps/bare-connection.js';
import { labNow } from '../history/lab-clock.js';
import { LONGEST_LEASE_MS, SETTINGS } from '../settings.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import { Grounds, type Seating } from './grounds.js';
import { PlainNode } from './server-node.js';
import type { Fitness } from './topology.js';
import { TopologyOnGrounds } from './topology-on-grounds.js';

export interface QuorumOptions {
  readonly name: string;
  readonly workers: number;
  readonly nodes: number;
  /** `always`: all that a server has answered is on its disk. `none`: it comes back empty. */
  readonly persistence: 'always' | 'none';
  /** By how many ms the clock of the last node is ahead, all the time. */
  readonly lastAheadMs?: number;
  readonly library?: string;
  readonly settings?: WorkerSettings;
}

/** A server says in whole seconds for how long it is up, of which the last may not be over. */
const UPTIME_IS_KNOWN_TO_MS = 2_000;

/** Servers that know nothing of each other, a majority of which gives each lock. */
export class Quorum extends TopologyOnGrounds {
  private constructor(
    name: string,
    override readonly nodes: readonly PlainNode[],
    fitness: Fitness,
    grounds: Grounds,
    private readonly delayAfterRestartMs: number,
  ) {
    super(name, fitness, grounds);
  }

  static async start({
    name,
    workers,
    nodes: count,
    persistence,
    lastAheadMs = 0,
    library,
    settings = SETTINGS,
  }: QuorumOptions): Promise<Quorum> {
    const keepsData = persistence === 'always';
    // Nothing is forgotten where all is on disk.
    const delayMs = keepsData ? 0 : Math.max(LONGEST_LEASE_MS, settings.watchdogMs);
    const grounds = await Grounds.open(settings);
    const nodes: PlainNode[] = [];
    const fitness: Fitness = {
      shape: 'quorum',
      seats: workers,
      nodes: count,
      sound: lastAheadMs === 0 ? count : count - 1,
      links: count,
      keepsData,
      // Where one is wrong all the time, another one would be too many.
      settableClock: lastAheadMs === 0,
    };
    const quorum = new Quorum(name, nodes, fitness, grounds, delayMs);
    try {
      for (let i = 0; i < count; i++) {
        const options = keepsData ? { appendFsync: 'always' as const } : {};
        const aheadMs = i === count - 1 ? lastAheadMs : 0;
        nodes.push(await PlainNode.start(options, grounds.scribe, { aheadMs }));
      }
      await quorum.seat(workers, library);
      return quorum;
    } catch (error) {
      await quorum[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Its servers are known when all of them have started. */
  protected get seating(): Seating {
    const { delayAfterRestartMs, nodes } = this;
    return {
      servers: nodes.map(({ server }) => server),
      redis: (ports) => ({ shape: 'quorum', ports, delayAfterRestartMs }),
      apps: { accepting: (bare) => this.accepting(bare) },
    };
  }

  /** No port: what a majority has is not asked for at each server. */
  private async accepting(bare: BareConnections): Promise<readonly number[] | undefined> {
    const counted = this.nodes.filter((node) => !node.clockWasSet && this.countsAt(node) <= labNow());
    const accepted = await Promise.all(counted.map(({ server }) => acceptsWrites(bare.to(server.port))));
    return accepted.filter(Boolean).length > this.nodes.length / 2 ? [] : undefined;
  }

  /** From when on a server that was started counts. */
  private countsAt({ startedAt }: PlainNode): number {
    const { delayAfterRestartMs } = this;
    return delayAfterRestartMs === 0 ? startedAt : startedAt + delayAfterRestartMs + UPTIME_IS_KNOWN_TO_MS;
  }

  override begin(round: string): void {
    super.begin(round);
    for (const node of this.nodes) node.clockWasSet = false;
  }

  override async heal(): Promise<void> {
    await super.heal();
    // Until then a server that was started counts as failed.
    await sleep(Math.max(0, ...this.nodes.map((node) => this.countsAt(node) - labNow())));
  }

  protected override async served(): Promise<void> {
    for (const node of this.nodes) if (!node.server.isRunning) await node.startAgain({ keepData: true });
  }

  override keepers(): Promise<readonly RedisServer[]> {
    return Promise.resolve(this.nodes.filter(({ clockWasSet }) => !clockWasSet).map(({ server }) => server));
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await Promise.all(this.nodes.map((node) => node[Symbol.asyncDispose]()));
  }
}
