import type { HistoryEvent } from '../../checker/history.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import type { Grounds, Seating } from './grounds.js';
import type { ServerNode } from './server-node.js';
import type { Fitness, Topology } from './topology.js';

/** What every topology does with its grounds, whatever its servers are. */
export abstract class TopologyOnGrounds implements Topology {
  readonly nodes: readonly ServerNode[] = [];
  round = '';

  protected constructor(
    readonly name: string,
    readonly fitness: Fitness,
    protected readonly grounds: Grounds,
  ) {}

  protected abstract readonly seating: Seating;

  get seats() {
    return this.grounds.seats;
  }

  get apps() {
    return this.grounds.apps;
  }

  get scribe() {
    return this.grounds.scribe;
  }

  seat(workers: number, library?: string): Promise<void> {
    return this.grounds.seat(workers, this.seating, library);
  }

  begin(round: string): void {
    this.round = round;
  }

  async heal(): Promise<void> {
    await this.grounds.mendLinks();
    await this.served();
    await this.grounds.fillSeats();
  }

  keepers(): Promise<readonly RedisServer[]> {
    return Promise.resolve([]);
  }

  takeHistory(): HistoryEvent[] {
    return this.grounds.takeHistory();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.grounds[Symbol.asyncDispose]();
  }

  /** Ends what is wrong with the servers. Resolves when all of them serve. */
  protected async served(): Promise<void> {}
}
