import type { ForeignTransaction } from '../../support/foreign-transaction.js';
import type { WorkerDatabase } from '../workload/worker-messages.js';
import type { KeptHold } from './kept-holds.js';
import type { Target } from './proxy-link.js';
import type { Requests } from './requests.js';

/** Disk of a database, whose faults look to the server like those of a real one. */
export interface FaultyDisk {
  /** Lets each flush take this much longer, in ms. */
  slow(ms: number): void;
  /** Lets writes fail because no space is left. */
  fill(): void;
  /** Ends both. */
  mend(): void;
}

/** Row of a statement, with its columns by name. */
export type Row = Readonly<Record<string, unknown>>;

/** A connection that asks the server for its time. */
export interface Probe {
  /** Resolves when the server has answered. */
  ask(): Promise<void>;
  close(): void;
}

/** A database server that keeps the locks in a table, as faults know it. */
export interface Database extends AsyncDisposable {
  readonly shape: WorkerDatabase['shape'];
  readonly target: Target;
  readonly requests: Requests;
  /** What only a connection for notifications has sent. */
  readonly subscribes: string;
  readonly isRunning: boolean;
  /** Undefined where the machine has no compiler for its library. */
  readonly disk: FaultyDisk | undefined;
  /** Kills all its processes. */
  kill(): Promise<void>;
  /** Ends the server in order, without waiting for its clients. */
  end(): Promise<void>;
  /** Stops all its processes. */
  stop(): Promise<void>;
  /** Lets them go on. */
  goOn(): Promise<void>;
  /** Starts the server with its data, and resolves when it serves. */
  startAgain(): Promise<void>;
  /** Resolves when it serves, perhaps again. */
  served(): Promise<void>;
  /** Runs statements as the administrator in the database of the locks. */
  query(statements: string): Promise<readonly Row[]>;
  /** A transaction of another user that has run a statement. It is rolled back in the end. */
  transaction(statement: string): Promise<ForeignTransaction>;
  probe(): Promise<Probe>;
  /** Connections of the lock user. */
  connections(): Promise<readonly number[]>;
  endConnection(id: number): Promise<void>;
  /** Ends the statement that a connection has under way. The connection stays. */
  cancel(id: number): Promise<void>;
  setReadOnly(isReadOnly: boolean): Promise<void>;
  /** Whether new connections of the lock user are refused. */
  setFull(isFull: boolean): Promise<void>;
  /** Holds whose lease runs, with the final key and the owner of each. */
  holds(): Promise<readonly KeptHold[]>;
  /** Sets the server's clock forward, or back. */
  jump(ms: number): void;
}
