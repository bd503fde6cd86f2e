import { SESSION_MS, SETTINGS } from '../settings.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import { DatabasePulse } from './database-pulse.js';
import { Ensemble } from './ensemble/ensemble.js';
import { ENSEMBLE_REQUESTS } from './ensemble/requests.js';
import { Grounds, type Seating } from './grounds.js';
import { ON_ZOOKEEPER } from './on-zookeeper.js';
import { TopologyOnGrounds } from './topology-on-grounds.js';

export interface ZooKeeperTopologyOptions {
  readonly name: string;
  readonly workers: number;
  /** The library that the workers load; undefined: the source. */
  readonly library?: string;
  readonly settings?: WorkerSettings;
}

/** An ensemble of ZooKeeper, workers behind a line of their own to each of its servers, and the register. */
export class ZooKeeperTopology extends TopologyOnGrounds {
  protected readonly seating: Seating;
  private readonly pulse: DatabasePulse;

  private constructor(
    name: string,
    workers: number,
    readonly ensemble: Ensemble,
    grounds: Grounds,
  ) {
    super(name, { ...ON_ZOOKEEPER, seats: workers }, grounds);
    this.pulse = new DatabasePulse(ensemble, grounds.scribe);
    this.seating = {
      servers: ensemble.servers,
      redis: (ports) => ({ shape: 'zookeeper', ports }),
      requests: ENSEMBLE_REQUESTS,
      subscribes: null,
    };
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
    const topology = new ZooKeeperTopology(name, workers, ensemble, grounds);
    await topology.seat(workers, library);
    return topology;
  }

  protected override served(): Promise<void> {
    return this.ensemble.served();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.pulse.close();
    await super[Symbol.asyncDispose]();
    await this.ensemble[Symbol.asyncDispose]();
  }
}
