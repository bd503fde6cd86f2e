import type { HistoryEvent } from '../../checker/history.js';
import { SETTINGS } from '../settings.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import { Grounds, type Seating } from './grounds.js';
import { RedisNode, type RedisNodeOptions } from './redis-node.js';
import type { Fitness } from './topology.js';
import { TopologyOnGrounds } from './topology-on-grounds.js';

export interface SingleRedisOptions extends RedisNodeOptions {
  readonly workers: number;
  /** The library that the workers load; undefined: the source. */
  readonly library?: string;
  /** What the workers' apps are set to. */
  readonly settings?: WorkerSettings;
}

/** One Redis server, workers behind lines of their own, and the register. */
export class SingleRedis extends TopologyOnGrounds {
  override readonly nodes: readonly [RedisNode];
  protected readonly seating: Seating;

  private constructor(
    name: string,
    readonly watched: RedisNode,
    fitness: Fitness,
    grounds: Grounds,
  ) {
    super(name, fitness, grounds);
    this.nodes = [watched];
    this.seating = { servers: [watched.server], redis: ([port]) => ({ shape: 'one', port: port! }) };
  }

  static async start({
    workers,
    library,
    settings = SETTINGS,
    ...nodeOptions
  }: SingleRedisOptions): Promise<SingleRedis> {
    const grounds = await Grounds.open(settings);
    const node = await RedisNode.start(nodeOptions, settings.keyPrefix, grounds.scribe);
    const { persistence, settableClock = false } = nodeOptions;
    const keepsData = persistence === 'always';
    const name = [keepsData ? 'with AOF' : 'without persistence', settableClock && 'with a clock that is set']
      .filter(Boolean)
      .join(', ');
    const single = { shape: 'one', nodes: 1, sound: 1, links: 1 } as const;
    const fitness: Fitness = { ...single, seats: workers, keepsData, settableClock };
    const topology = new SingleRedis(name, node, fitness, grounds);
    await topology.seat(workers, library);
    return topology;
  }

  override keepers() {
    return Promise.resolve([this.watched.server]);
  }

  override takeHistory(): HistoryEvent[] {
    this.watched.settle();
    return super.takeHistory();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.watched[Symbol.asyncDispose]();
  }
}
