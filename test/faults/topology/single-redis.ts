import type { HistoryEvent } from '../../checker/history.js';
import { SETTINGS } from '../settings.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import { Grounds } from './grounds.js';
import { RedisNode, type RedisNodeOptions } from './redis-node.js';
import type { Fitness, Topology } from './topology.js';

export interface SingleRedisOptions extends RedisNodeOptions {
  readonly workers: number;
  /** The library that the workers load; undefined: the source. */
  readonly library?: string;
  /** What the workers' apps are set to. */
  readonly settings?: WorkerSettings;
}

/** One Redis server, workers behind lines of their own, and the register. */
export class SingleRedis implements Topology {
  round = '';

  private constructor(
    readonly name: string,
    readonly watched: RedisNode,
    readonly fitness: Fitness,
    private readonly grounds: Grounds,
  ) {}

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

  get nodes(): readonly [RedisNode] {
    return [this.watched];
  }

  get seats() {
    return this.grounds.seats;
  }

  get scribe() {
    return this.grounds.scribe;
  }

  seat(workers: number, library?: string): Promise<void> {
    const seating = {
      servers: [this.watched.server],
      redis: ([port]: readonly number[]) => ({ shape: 'one', port: port! }) as const,
    };
    return this.grounds.seat(workers, seating, library);
  }

  begin(round: string): void {
    this.round = round;
  }

  async heal(): Promise<void> {
    await this.grounds.mendLinks();
    await this.grounds.fillSeats();
  }

  keepers() {
    return Promise.resolve([this.watched.server]);
  }

  takeHistory(): HistoryEvent[] {
    this.watched.settle();
    return this.grounds.takeHistory();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.grounds[Symbol.asyncDispose]();
    await this.watched[Symbol.asyncDispose]();
  }
}
