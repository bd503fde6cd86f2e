import type { Had, Sections } from '../java/contest.js';
import { JavaProcess, launchJava, type CommonCommands, type Compiles } from '../java/java-process.js';
import { builtWith, NEWEST_REDISSON, REDISSON_PROGRAM } from './redisson-build.js';

/** `multi` is a lock of several, whose name is made by {@link several}; `red` one on several servers. */
export type RedissonKind = 'lock' | 'spin' | 'fair' | 'fenced' | 'read' | 'write' | 'multi' | 'red';

/** The name of a lock of the kind `multi`. */
export const several = (...names: readonly string[]): string => names.join(' + ');

interface OnLock {
  readonly name: string;
  readonly kind?: RedissonKind;
  /** The thread it runs on: locks belong to threads. Default: one that all without a thread share. */
  readonly thread?: string;
}

/** What the Java side can be told, and what it answers. Times are ms since 1970. */
export interface RedissonCommands extends CommonCommands {
  lock: { params: OnLock & { readonly leaseMs?: number }; result: number };
  tryLock: { params: OnLock & { readonly waitMs?: number; readonly leaseMs?: number }; result: boolean };
  unlock: { params: OnLock; result: number };
  forceUnlock: { params: OnLock; result: boolean };
  isLocked: { params: OnLock; result: boolean };
  leftMs: { params: OnLock; result: number };
  contend: {
    params: OnLock & {
      readonly threads: number;
      readonly workMs: number;
      readonly forMs: number;
      /** It asks so often, and does not wait. */
      readonly pollEveryMs?: number;
    };
    result: readonly Had[];
  };
  sections: {
    params: {
      readonly name: string;
      readonly by: 'readWrite' | 'semaphore' | 'permits';
      readonly threads: number;
      /** So many of the threads write. */
      readonly writers: number;
      readonly workMs: number;
      readonly forMs: number;
      readonly startAt: number;
    };
    result: readonly Sections[];
  };
  count: {
    params: OnLock & { readonly threads: number; readonly rounds: number; readonly counter: string };
    result: readonly number[];
  };
  /** How often a counter had changed under the lock, for each thread. */
  compare: {
    params: OnLock & { readonly threads: number; readonly rounds: number; readonly counter: string };
    result: readonly number[];
  };
  /** Of a fenced lock: its token. */
  lockToken: { params: OnLock; result: number };
  /** The same with threads, each so often; the tokens go into a list. */
  tokens: {
    params: OnLock & { readonly threads: number; readonly rounds: number; readonly series: string };
    result: readonly number[];
  };
  semaphore: { params: OnSemaphore & { readonly op: keyof SemaphoreResults }; result: unknown };
  permits: { params: OnPermits & { readonly op: keyof PermitResults }; result: unknown };
  latch: { params: OnLatch & { readonly op: keyof LatchResults }; result: unknown };
}

/** What the Java side can be told of a semaphore, and what it answers. Those that only do something answer when. */
interface SemaphoreResults {
  acquire: number;
  tryAcquire: boolean;
  release: number;
  trySetPermits: boolean;
  addPermits: number;
  drainPermits: number;
  availablePermits: number;
  delete: boolean;
  /** For each thread: the most that it saw inside at once. */
  share: readonly number[];
}

/** The same of permits that end. */
interface PermitResults {
  acquire: { readonly permit: string; readonly at: number };
  tryAcquire: string | null;
  release: number;
  tryRelease: boolean;
  updateLeaseTime: boolean;
  trySetPermits: boolean;
  setPermits: number;
  addPermits: number;
  getPermits: number;
  availablePermits: number;
  acquiredPermits: number;
  delete: boolean;
  /** For each thread: the most that it saw inside at once. */
  share: readonly number[];
  /** For each thread: how many it took, and never gave back. */
  abandon: readonly number[];
}

/** The same of a latch. -1 for a wait that was in vain. */
interface LatchResults {
  trySetCount: boolean;
  countDown: number;
  getCount: number;
  await: number;
  delete: boolean;
}

interface OnSemaphore {
  readonly name: string;
  readonly thread?: string;
  readonly permits?: number;
  readonly waitMs?: number;
  readonly threads?: number;
  readonly rounds?: number;
  readonly counter?: string;
}

interface OnPermits extends OnSemaphore {
  readonly permit?: string;
  /** Default: it never ends. */
  readonly leaseMs?: number;
}

interface OnLatch {
  readonly name: string;
  readonly thread?: string;
  readonly count?: number;
  readonly waitMs?: number;
}

export interface RedissonOptions {
  readonly version?: string;
  readonly watchdogMs?: number;
  /** Default: `soon`. */
  readonly compiles?: Compiles;
  /** What the addresses are: one server, servers of which each is one, or some of a cluster. Default: `one`. */
  readonly mode?: 'one' | 'each' | 'cluster' | 'cluster-unsharded';
}

/**
 * A Java process with a Redisson client, which does what it is told. It never outlives the test process.
 *
 * @example
 * await using java = await Redisson.start(server.url);
 * await java.send('lock', { name: 'order' });
 */
export class Redisson extends JavaProcess<RedissonCommands> {
  /** Starts one, and builds it first if it has to. Resolves once it is connected. */
  static async start(
    urls: string,
    { version = NEWEST_REDISSON, watchdogMs = 30_000, compiles = 'soon', mode = 'one' }: RedissonOptions = {},
  ): Promise<Redisson> {
    const classpath = await builtWith(version);
    const args = [urls, String(watchdogMs), mode];
    const redisson = new Redisson(launchJava({ classpath, program: REDISSON_PROGRAM, args, compiles }));
    await redisson.booted();
    return redisson;
  }

  semaphore<O extends keyof SemaphoreResults>(op: O, params: OnSemaphore): Promise<SemaphoreResults[O]> {
    return this.send('semaphore', { op, ...params }) as Promise<SemaphoreResults[O]>;
  }

  permits<O extends keyof PermitResults>(op: O, params: OnPermits): Promise<PermitResults[O]> {
    return this.send('permits', { op, ...params }) as Promise<PermitResults[O]>;
  }

  latch<O extends keyof LatchResults>(op: O, params: OnLatch): Promise<LatchResults[O]> {
    return this.send('latch', { op, ...params }) as Promise<LatchResults[O]>;
  }
}
