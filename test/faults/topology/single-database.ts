import { PgBouncer } from '../../support/servers/pg-bouncer.js';
import { SETTINGS } from '../settings.js';
import type { WorkerSettings } from '../workload/worker-messages.js';
import type { Database } from './database.js';
import { DatabasePulse } from './database-pulse.js';
import { FaultyEquipment } from './databases/equipment.js';
import { MysqlDatabase } from './databases/mysql.js';
import { PostgresDatabase } from './databases/postgres.js';
import { Grounds, type Seating } from './grounds.js';
import type { Fitness } from './topology.js';
import { TopologyOnGrounds } from './topology-on-grounds.js';

export interface SingleDatabaseOptions {
  readonly name: string;
  readonly shape: Database['shape'];
  readonly workers: number;
  /** Lets the workers of PostgreSQL send their statements through PgBouncer. They hear notifications past it. */
  readonly pooled?: boolean;
  /** Runs the server with a clock that can be set. */
  readonly settableClock?: boolean;
  /** The library that the workers load; undefined: the source. */
  readonly library?: string;
  readonly settings?: WorkerSettings;
}

/** Connections of PgBouncer: fewer than the lanes of the workers, so that these share them. */
const POOLED_CONNECTIONS = 8;

const DATABASES = { mysql: MysqlDatabase, postgres: PostgresDatabase };

/** One database server, workers behind lines of their own, and the register. */
export class SingleDatabase extends TopologyOnGrounds {
  protected readonly seating: Seating;
  private readonly pulse: DatabasePulse;

  private constructor(
    name: string,
    readonly database: Database,
    private readonly pooler: PgBouncer | undefined,
    fitness: Fitness,
    grounds: Grounds,
  ) {
    super(name, fitness, grounds);
    this.pulse = new DatabasePulse(database, grounds.scribe);
    const { shape, target, requests, subscribes } = database;
    const redis: Seating['redis'] = ([port, listenPort]) => ({ shape, port: port!, listenPort });
    const servers = pooler ? [pooler, target] : [target];
    this.seating = { servers, redis, requests, subscribes };
  }

  static async start({
    name,
    shape,
    workers,
    pooled = false,
    settableClock = false,
    library,
    settings = SETTINGS,
  }: SingleDatabaseOptions): Promise<SingleDatabase> {
    const grounds = await Grounds.open(settings);
    const database = await DATABASES[shape].start(await FaultyEquipment.create({ settableClock }));
    const pooler = pooled ? await PgBouncer.start(database.target, POOLED_CONNECTIONS) : undefined;
    const links = pooler ? 2 : 1;
    const single = { shape: 'database', nodes: 1, sound: 1, links, keepsData: true } as const;
    const faultyDisk = database.disk !== undefined;
    const fitness: Fitness = { ...single, seats: workers, settableClock, faultyDisk };
    const topology = new SingleDatabase(name, database, pooler, fitness, grounds);
    await topology.seat(workers, library);
    return topology;
  }

  protected override served(): Promise<void> {
    return this.database.served();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.pulse.close();
    await super[Symbol.asyncDispose]();
    await this.pooler?.[Symbol.asyncDispose]();
    await this.database[Symbol.asyncDispose]();
  }
}
