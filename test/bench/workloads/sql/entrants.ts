import { BY_HAND, type Contender } from '../../contenders.js';
import { WAIT_MS } from '../../measure/contended.js';
import type { SubjectWorker } from '../../processes/subject-worker.js';
import type { Bench } from '../../workload.js';

/** Connections of everything that has a pool. */
const CONNECTIONS = 10;

export const REDIS: Contender = { ...BY_HAND, name: 'RedisStore' };

/** A database of the benchmark. Its commits wait for a disk, as they do in an app. */
export interface BenchDatabase extends AsyncDisposable {
  readonly uri: string;
  /** Resolves with the number of statements that clients have sent. */
  statements(): Promise<number>;
  /** Resolves with the CPU time of the server since its start, in µs. */
  cpuUs(): Promise<number>;
}

/** A database, what is measured on it, and what it should reach. */
export interface Entrants {
  /** Part of the names of workloads and files. */
  readonly id: string;
  readonly title: string;
  /** The store with as many lanes as the others have connections. */
  readonly ours: Contender;
  /** The store as it is by default. */
  readonly byDefault: Contender;
  /** The statements of ShedLock, without Java. */
  readonly shedLock: Contender;
  /** Locks by hand that end with their connection. */
  readonly ofConnections: readonly Contender[];
  /** What the page says about the server and its statements. */
  readonly shows: string;
  readonly doesNotShow: string;
  readonly targets: {
    /** Least rate of `ours`, relative to the way of ShedLock. */
    readonly ofShedLock: number;
    /** Least rate with 100 callers, in locks per second. */
    readonly rate?: number;
    readonly handOverMs: number;
    /** Least rate of 64 processes, relative to that of 2. */
    readonly ofFewProcesses: number;
    /** Most statements for each grant, whatever the crowd. */
    readonly statements: number;
  };
  start(): Promise<BenchDatabase>;
}

/** Returns what is measured on a database: its store, and the locks by hand of its subject. */
export const contendersOf = (store: string, subject: string, ofConnections: readonly string[]) => {
  const byHand = (style: string): Contender => ({ name: style, subject, style, renews: false });
  return {
    ours: { ...BY_HAND, name: `${store}, ${CONNECTIONS} lanes` },
    byDefault: { ...BY_HAND, name: `${store}, 4 lanes (the default)` },
    shedLock: { ...byHand('ShedLock'), name: 'the way of ShedLock' },
    ofConnections: ofConnections.map(byHand),
  };
};

/** Names of the locks that end with their connection, for the page. */
export const byConnection = ({ ofConnections }: Entrants): string =>
  ofConnections.map(({ name }) => `\`${name}\``).join(' and ');

/** Returns processes of a contender, on Redis or on the database. */
export const workersOf = (
  { crew, server }: Bench,
  { byDefault }: Entrants,
  database: BenchDatabase,
  contender: Contender,
  count: number,
): Promise<readonly SubjectWorker[]> =>
  crew.of(contender, count, {
    url: contender === REDIS ? server.url : database.uri,
    waitMs: WAIT_MS,
    ...(contender !== REDIS && contender !== byDefault && { connections: CONNECTIONS }),
  });
