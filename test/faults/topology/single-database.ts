import type { HistoryEvent } from '../../checker/history.js';
import { SETTINGS } from '../settings.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import type { Database } from './database.js';
import { DatabasePulse } from './database-pulse.js';
import { Equipment } from './databases/equipment.js';
import { MysqlDatabase } from './databases/mysql.js';
import { PostgresDatabase } from './databases/postgres.js';
import { Grounds } from './grounds.js';
import type { Fitness, Topology } from './topology.js';

export interface SingleDatabaseOptions {
  readonly name: string;
  readonly shape: Database['shape'];
  readonly workers: number;
  /** Runs the server with a clock that can be set. */
  readonly settableClock?: boolean;
  /** The library that the workers load; undefined: the source. */
  readonly library?: string;
  readonly settings?: WorkerSettings;
}

const DATABASES = { mysql: MysqlDatabase, postgres: PostgresDatabase };

/** One database server, workers behind lines of their own, and the register. */
export class SingleDatabase implements Topology {
  readonly nodes = [];
  round = '';
  private readonly pulse: DatabasePulse;

  private constructor(
    readonly name: string,
    readonly database: Database,
    readonly fitness: Fitness,
    private readonly grounds: Grounds,
  ) {
    this.pulse = new DatabasePulse(database, grounds.scribe);
  }

  static async start({
    name,
    shape,
    workers,
    settableClock = false,
    library,
    settings = SETTINGS,
  }: SingleDatabaseOptions): Promise<SingleDatabase> {
    const grounds = await Grounds.open(settings);
    const database = await DATABASES[shape].start(await Equipment.create({ settableClock }));
    const single = { shape: 'database', nodes: 1, sound: 1, links: 1, keepsData: true } as const;
    const faultyDisk = database.disk !== undefined;
    const fitness: Fitness = { ...single, seats: workers, settableClock, faultyDisk };
    const topology = new SingleDatabase(name, database, fitness, grounds);
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
    const { shape, target, requests, subscribes } = this.database;
    const redis = ([port]: readonly number[]) => ({ shape, port: port! }) as const;
    return this.grounds.seat(workers, { servers: [target], redis, requests, subscribes }, library);
  }

  begin(round: string): void {
    this.round = round;
  }

  async heal(): Promise<void> {
    await this.grounds.mendLinks();
    await this.database.served();
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
    await this.database[Symbol.asyncDispose]();
  }
}
