import type { MeetingTask, PermitsTask } from '../../checker/object-user.js';
import type { Task } from './task.js';

/** Other ports for servers that call themselves by the ports on the left. */
export type Ports = Readonly<Record<number, number>>;

/** Where Redis is for a worker: always through lines of its own. */
export type WorkerRedis =
  | { readonly shape: 'one'; readonly port: number }
  | { readonly shape: 'quorum'; readonly ports: readonly number[]; readonly delayAfterRestartMs: number }
  | {
      readonly shape: 'sentinel';
      /** Where sentinels are asked. */
      readonly ports: readonly number[];
      readonly name: string;
      readonly nat: Ports;
      readonly replicas?: ReplicasWanted;
    }
  | {
      readonly shape: 'cluster';
      /** Some of its servers. */
      readonly ports: readonly number[];
      readonly nat: Ports;
      readonly replicas?: ReplicasWanted;
    };

/** Where the database is for a worker. */
export interface WorkerDatabase {
  readonly shape: 'mysql' | 'postgres';
  readonly port: number;
  /** Where notifications are heard, when the other port is that of a proxy that shares connections. */
  readonly listenPort?: number | undefined;
}

/** Where the servers of ZooKeeper are for a worker. */
export interface WorkerEnsemble {
  readonly shape: 'zookeeper';
  readonly ports: readonly number[];
}

/** Where the locks are kept. */
export type WorkerServers = WorkerRedis | WorkerDatabase | WorkerEnsemble;

/** Kinds of lock beside the exclusive one. */
export type OtherKind = 'permit' | 'fair' | 'read-write' | 'object';

export interface ReplicasWanted {
  readonly min: number;
  readonly timeoutMs: number;
}

/** What a worker is started with, as its one argument in JSON. */
export interface WorkerSetup {
  /** The name of the process in the history. */
  readonly process: string;
  readonly history: string;
  readonly redis: WorkerServers;
  readonly registerPort: number;
  /** The library to load; undefined: the source. */
  readonly library?: string;
  readonly settings: WorkerSettings;
}

export interface WorkerSettings {
  readonly keyPrefix: string;
  readonly watchdogMs: number;
  readonly commandTimeoutMs: number;
}

/** What a caller does with a semaphore or a latch. */
export type ObjectTask = ({ readonly do: 'work' } & PermitsTask) | ({ readonly do: 'meet' } & MeetingTask);

/** Callers that go on until they are told to stop. */
export interface Load {
  readonly seed: string;
  readonly callers: number;
  readonly hotKeys: number;
  readonly coldKeys: number;
  /** How many come in the same moment, now and then. */
  readonly crowd: number;
  /** What the store has; `object` stands for semaphores and latches. */
  readonly kinds: readonly OtherKind[];
  /** How many callers of a worker keep locks for so long that a server may fail meanwhile. */
  readonly keepers: number;
  /** For how long they keep one at most. */
  readonly keptForMs: number;
  /** Whether the store keeps a lock for a minimum time. */
  readonly minimum: boolean;
}

export type ToWorker =
  /** A round begins: keys get its name. Without a load only tasks are performed. */
  | { readonly type: 'begin'; readonly round: string; readonly load?: Load }
  | { readonly type: 'perform'; readonly id: number; readonly task: Task }
  | { readonly type: 'use'; readonly id: number; readonly task: ObjectTask }
  /** What steps of tasks wait for, from now on or for a while already. */
  | { readonly type: 'go'; readonly what: string }
  /** No new tasks; answered by `idle` when all are over and what can be cleaned up was. */
  | { readonly type: 'stop' }
  /** Nothing else runs for this long. */
  | { readonly type: 'block'; readonly ms: number }
  /** The wall clock is set forward, or back. */
  | { readonly type: 'jump'; readonly ms: number };

export type FromWorker =
  /** `instance`: what the owners of this process's holds begin with. */
  | { readonly type: 'ready'; readonly instance: string }
  | { readonly type: 'performed'; readonly id: number }
  | { readonly type: 'notified'; readonly what: string }
  | { readonly type: 'idle' };
