import type { HistoryEvent } from '../../checker/history.js';
import type { Apps } from '../apps/apps.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import type { Scribe } from '../history/scribe.js';
import type { Database } from './database.js';
import type { Ensemble } from './ensemble/ensemble.js';
import type { Replicated } from './replicated.js';
import type { RedisNode } from './redis-node.js';
import type { Seat } from './seat.js';
import type { ServerNode } from './server-node.js';

/** What a laboratory is made of. Faults act on it, workloads run on it; neither knows more of it than this. */
export interface Topology extends AsyncDisposable {
  readonly name: string;
  /** The Redis servers that keep locks: a single one, those of a quorum, or masters and replicas. */
  readonly nodes: readonly ServerNode[];
  /** The only server, all of whose commands are seen. Undefined where there are several. */
  readonly watched?: RedisNode;
  /** The server of a database, if that keeps the locks. */
  readonly database?: Database;
  /** The servers of ZooKeeper, if those keep the locks. */
  readonly ensemble?: Ensemble;
  /** What servers do with each other, where some take over from others. */
  readonly replicated?: Replicated;
  /** The workers, each with a line of its own to each server. */
  readonly seats: readonly Seat[];
  /** Apps that are there before a fault; undefined where nothing takes over from anything. */
  readonly apps?: Apps | undefined;
  readonly scribe: Scribe;
  /** What faults the topology is fit for. */
  readonly fitness: Fitness;
  /** Puts these workers in the place of those that were there. */
  seat(workers: number, library?: string): Promise<void>;
  /** A round of this name begins: it is part of every key. */
  begin(round: string): void;
  /** The round that goes on. */
  readonly round: string;
  /** Ends whatever is still wrong: lines, servers, empty seats. */
  heal(): Promise<void>;
  /** The servers in which nothing may be left, once nothing is that a fault has brought back. */
  keepers(): Promise<readonly RedisServer[]>;
  /** What happened since the last time, in all processes. */
  takeHistory(): HistoryEvent[];
}

/** How the servers of a topology belong together. */
export type Shape = 'one' | 'quorum' | 'sentinel' | 'cluster' | 'database' | 'zookeeper';

export interface Fitness {
  readonly shape: Shape;
  readonly seats: number;
  readonly nodes: number;
  /** How many of them have a right clock: the first. */
  readonly sound: number;
  /** To how many servers each seat has a line: to the nodes first. */
  readonly links: number;
  /** A server that is killed has its data afterwards. */
  readonly keepsData: boolean;
  readonly settableClock: boolean;
  /** The disk of a database can be slow and full. */
  readonly faultyDisk?: boolean;
}
