import type { HistoryEvent } from '../../checker/history.js';
import { SESSION_MS, SETTINGS } from '../settings.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import { DatabasePulse } from './database-pulse.js';
import { Ensemble } from './ensemble/ensemble.js';
import { ENSEMBLE_REQUESTS } from './ensemble/requests.js';
import { Grounds } from './grounds.js';
import { ON_ZOOKEEPER } from './on-zookeeper.js';
import type { Fitness, Topology } from './topology.js';

export interface ZooKeeperTopologyOptions {
  readonly name: string;
  readonly workers: number;
  /** The library that the workers load; undefined: the source. */
  readonly library?: string;
  readonly settings?: WorkerSettings;
}

/** An ensemble of ZooKeeper, workers behind a line of their own to each of its servers, and the register. */
export class ZooKeeperTopology implements Topology {
  readonly nodes = [];
  round = '';
  private readonly pulse: DatabasePulse;

  private constructor(
    readonly name: string,
    readonly ensemble: Ensemble,
    readonly fitness: Fitness,
    private readonly grounds: Grounds,
  ) {
    this.pulse = new DatabasePulse(ensemble, grounds.scribe);
  }

  static async start({
    name,
    workers,
    library,
    // A session is what the watchdog asks for.
    settings = { ...SETTINGS, watchdogMs: SESSION_MS },
  }: ZooKeeperTopologyOptions): Promise<ZooKeeperTopology> {
    const grounds = await Grounds.open(settings);
    const ensemble = await Ensemble.start();
    const topology = new ZooKeeperTopology(name, ensemble, { ...ON_ZOOKEEPER, seats: workers }, grounds);
    await topology.seat(workers, library);
    return topology;
  }

  get seats() {
    return this.grounds.seats;
  }

  get scribe() {
    return this.grounds.scribe;
  }

  seat(workers: number, library?: string): Promise<void> {
    const redis = (ports: readonly number[]) => ({ shape: 'zookeeper', ports }) as const;
    const { servers } = this.ensemble;
    const seating = { servers, redis, requests: ENSEMBLE_REQUESTS, subscribes: null };
    return this.grounds.seat(workers, seating, library);
  }

  begin(round: string): void {
    this.round = round;
  }

  async heal(): Promise<void> {
    await this.grounds.mendLinks();
    await this.ensemble.served();
    await this.grounds.fillSeats();
  }

  keepers() {
    return Promise.resolve([]);
  }

  takeHistory(): HistoryEvent[] {
    return this.grounds.takeHistory();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.pulse.close();
    await this.grounds[Symbol.asyncDispose]();
    await this.ensemble[Symbol.asyncDispose]();
  }
}
