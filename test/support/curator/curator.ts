import { until } from '../async.js';
import type { Sections } from '../java/contest.js';
import {
  JavaProcess,
  launchJava,
  type CommonCommands,
  type Compiles,
  type JavaEvent,
} from '../java/java-process.js';
import { builtWith, CURATOR_PROGRAM, NEWEST_CURATOR } from './curator-build.js';

interface OnThread {
  /** Locks belong to threads. Default: `main`. */
  readonly thread?: string;
}

interface OnPath extends OnThread {
  /** Path of the lock in ZooKeeper. */
  readonly name: string;
}

/** Default: `mutex`, which is an `InterProcessMutex`. */
interface OnMutex extends OnPath {
  readonly kind?: 'mutex' | 'read' | 'write';
}

interface OnSemaphoreMutex extends OnPath {
  readonly kind: 'semaphore-mutex';
}

/** `InterProcessSemaphoreV2`: each acquired lease is released by one `unlock` on the same thread. */
interface OnSemaphore extends OnPath {
  readonly kind: 'semaphore';
  /** How many leases there are. Clients have to agree. Default: 1. */
  readonly leases?: number;
}

/** `InterProcessMultiLock`: acquired in the order of the paths. */
interface OnSeveral extends OnThread {
  readonly kind: 'multi';
  readonly paths: readonly string[];
}

type OnLock = OnMutex | OnSemaphoreMutex | OnSeveral;
type OnSection = OnLock | OnSemaphore;

/** Kinds of Curator on one path. */
export type CuratorKind = Exclude<OnSection, OnSeveral>['kind'];

/** The counter is in a file or in the data of a node. A missing one is 0. */
type OnCounter = { readonly counter: string } | { readonly file: string };

interface Waiting {
  readonly waitMs?: number;
}

/** Commands of the Java side with Curator. Times are ms since 1970. */
export interface CuratorCommands extends CommonCommands {
  /** When it was acquired; false after `waitMs`. Default: no limit. `revocable` emits events `revoke` from now on. */
  lock: { params: OnSection & Waiting & { readonly revocable?: boolean }; result: number | false };
  /** Default of `waitMs`: 0. */
  tryLock: { params: OnSection & Waiting; result: boolean };
  unlock: { params: OnSection; result: number };
  /** Whether a thread of this process holds it. */
  isLocked: { params: OnLock; result: boolean };
  /** The number of increments, by thread. */
  count: {
    params: OnSection & OnCounter & { readonly threads: number; readonly rounds: number };
    result: readonly number[];
  };
  /** The value of a counter. */
  read: { params: OnCounter; result: number };
  /** How often a counter changed while the lock was held, by thread. */
  compare: {
    params: OnSection & OnCounter & { readonly threads: number; readonly rounds: number };
    result: readonly number[];
  };
  /** Each thread ends after `forMs`, or after this many `rounds`. Default of `rounds`: no limit. */
  contend: {
    params: OnSection & {
      readonly threads: number;
      readonly workMs: number;
      readonly forMs: number;
      readonly rounds?: number;
    };
    result: readonly Sections[];
  };
  /** Each thread rounds locks of its own below a path, this many of them. `elapsedMs` is until the last one was done. */
  free: {
    params: {
      readonly below: string;
      readonly threads: number;
      readonly each: number;
      readonly forMs: number;
    };
    result: { readonly served: readonly number[]; readonly elapsedMs: number };
  };
  /** Workers wait for the lock for up to `waitMs` each, then work for `workMs`. */
  demo: {
    params: OnSection & { readonly workers: number; readonly waitMs: number; readonly workMs: number };
    result: { readonly entered: number; readonly gaveUp: number };
  };
  /** Paths of the nodes of the holders and waiters, in order. */
  participants: { params: OnMutex | OnSemaphore; result: readonly string[] };
  /** Asks the first participant to release. The result is its node, or null if there is none. */
  revoke: { params: OnMutex; result: string | null };
  /** The node of the hold of the thread; null without one. */
  node: { params: OnMutex | OnSemaphore; result: string | null };
  /** The fencing token: `czxid` of that node. */
  token: { params: OnMutex | OnSemaphore; result: number | null };
  /** The id of the session, in hexadecimal. */
  session: { params: object; result: string };
}

/** Another client asks for the release of a revocable lock. */
interface RevokeEvent extends JavaEvent {
  readonly event: 'revoke';
  readonly name: string;
  readonly kind: NonNullable<OnMutex['kind']>;
}

/** `state` is a `ConnectionState` of Curator. */
interface ConnectionEvent extends JavaEvent {
  readonly event: 'connection';
  readonly state: 'CONNECTED' | 'SUSPENDED' | 'RECONNECTED' | 'LOST' | 'READ_ONLY';
}

export type CuratorEvent = RevokeEvent | ConnectionEvent;

export interface CuratorOptions {
  readonly version?: string;
  /** The server limits it to 2 to 20 ticks. Default: 10,000. */
  readonly sessionTimeoutMs?: number;
  /** Default: 5,000, or the session time-out if that is shorter. */
  readonly connectionTimeoutMs?: number;
  /** Default: `soon`. */
  readonly compiles?: Compiles;
}

/**
 * A Java process with a Curator client, which runs the commands of a test. It never outlives the test process.
 *
 * @example
 * await using java = await Curator.start('127.0.0.1:2181');
 * await java.send('lock', { name: '/locks/order' });
 */
export class Curator extends JavaProcess<CuratorCommands, CuratorEvent> {
  /** Starts a process, and builds it first if it has to. Resolves when it is connected. */
  static async start(
    connectString: string,
    {
      version = NEWEST_CURATOR,
      sessionTimeoutMs = 10_000,
      connectionTimeoutMs = Math.min(5_000, sessionTimeoutMs),
      compiles = 'soon',
    }: CuratorOptions = {},
  ): Promise<Curator> {
    const classpath = await builtWith(version);
    const args = [connectString, String(sessionTimeoutMs), String(connectionTimeoutMs)];
    const curator = new Curator(launchJava({ classpath, program: CURATOR_PROGRAM, args, compiles }));
    await curator.booted();
    return curator;
  }

  /** Resolves with the first event of this type that the predicate accepts, also one from before. */
  event<T extends CuratorEvent['event']>(
    type: T,
    accepts: (event: Extract<CuratorEvent, { readonly event: T }>) => boolean = () => true,
  ): Promise<Extract<CuratorEvent, { readonly event: T }>> {
    const isOfType = (event: CuratorEvent): event is Extract<CuratorEvent, { readonly event: T }> =>
      event.event === type;
    return until(() => this.events.filter(isOfType).find(accepts), { what: `Curator reports ${type}` });
  }
}
