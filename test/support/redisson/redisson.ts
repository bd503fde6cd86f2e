import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { guardProcess } from '../process-guard.js';
import { until, within } from '../async.js';
import { builtWith, NEWEST_REDISSON } from './redisson-build.js';

/** How long a Java process may take to start on a machine that has much else to do. */
const BOOT_MS = 30_000;

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

/** What callers of one side had of a contended lock. */
export interface Had {
  readonly served: number;
  /** The longest time without it, in ms. */
  readonly longestMs: number;
}

/** What a thread came to that went in, worked and left for a while. */
export interface Sections extends Had {
  /** When each section began and ended. */
  readonly times: readonly (readonly [beganAt: number, endedAt: number])[];
}

/** What the Java side can be told, and what it answers. Times are ms since 1970. */
export interface RedissonCommands {
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
  /** Whether another thread sleeps until it is told that the lock that it wants is free. */
  sleeps: { params: { readonly of: string; readonly thread: string }; result: boolean };
  /** CPU time of the process so far. */
  cpuMs: { params: object; result: number };
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

interface Reply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export interface RedissonOptions {
  readonly version?: string;
  readonly watchdogMs?: number;
  /** How the JVM compiles: soon, which tests want, or well, which takes it longer. Default: `soon`. */
  readonly compiles?: 'soon' | 'well';
  /** What the addresses are: one server, servers of which each is one, or some of a cluster. Default: `one`. */
  readonly mode?: 'one' | 'each' | 'cluster' | 'cluster-unsharded';
}

/**
 * A Java process with a Redisson client, which does what it is told. It never outlives the test process.
 *
 * @example
 * await using java = await Redisson.start(server.url);
 * await java.tell('lock', { name: 'order' });
 */
export class Redisson implements AsyncDisposable {
  private readonly pending = new Map<number, Pending>();
  private commands = 0;
  private text = '';
  private over: Error | undefined;

  private constructor(private readonly child: ChildProcessByStdio<Writable, Readable, Readable>) {
    guardProcess(child);
    child.stdin.on('error', () => undefined);
    child.stderr.on('data', (chunk: Buffer) => (this.text += chunk.toString()));
    createInterface({ input: child.stdout }).on('line', (line) => this.replied(JSON.parse(line) as Reply));
    child.once('exit', (code, signal) => {
      this.over = new Error(`the Java side has ended with ${code ?? signal}:\n${this.text}`);
      for (const { reject } of this.pending.values()) reject(this.over);
    });
  }

  /** Starts one, and builds it first if it has to. Resolves once it is connected. */
  static async start(
    urls: string,
    { version = NEWEST_REDISSON, watchdogMs = 30_000, compiles = 'soon', mode = 'one' }: RedissonOptions = {},
  ): Promise<Redisson> {
    const classpath = await builtWith(version);
    const quick = compiles === 'soon' ? ['-XX:TieredStopAtLevel=1'] : [];
    const args = ['-Xmx256m', '-XX:+UseSerialGC', ...quick, '-cp', classpath];
    const child = spawn('java', [...args, 'RedissonSide', urls, String(watchdogMs), mode], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const redisson = new Redisson(child);
    await within(BOOT_MS, redisson.replyTo(0), 'the start of the Java side');
    return redisson;
  }

  /** What it has logged. */
  get log(): string {
    return this.text;
  }

  send<C extends keyof RedissonCommands>(
    command: C,
    params: RedissonCommands[C]['params'],
  ): Promise<RedissonCommands[C]['result']> {
    const id = (this.commands += 1);
    const result = this.replyTo(id);
    this.child.stdin.write(`${JSON.stringify({ id, do: command, ...params })}\n`);
    return result;
  }

  /** Resolves when a thread sleeps until it is told that the lock that it wants is free. */
  async asleep(thread = 'main'): Promise<void> {
    await until(() => this.send('sleeps', { of: thread, thread: 'observer' }), {
      what: `the thread "${thread}" of Java sleeps`,
    });
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

  async kill(): Promise<void> {
    if (this.over) return;
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  private replyTo(id: number): Promise<unknown> {
    if (this.over) return Promise.reject(this.over);
    return new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }));
  }

  private replied({ id, result, error }: Reply): void {
    const pending = this.pending.get(id);
    this.pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new Error(error));
  }
}
