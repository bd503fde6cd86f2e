import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { until, within } from '../async.js';
import { guardProcess } from '../process-guard.js';

/** How long a Java process may take to start on a machine that has much else to do. */
const BOOT_MS = 30_000;

/** How the JVM compiles: soon, which tests want, or well, which takes longer. */
export type Compiles = 'soon' | 'well';

/** Commands of every Java side. */
export interface CommonCommands {
  /** Whether another thread sleeps until it is notified that the lock that it waits for is free. */
  sleeps: { params: { readonly of: string; readonly thread: string }; result: boolean };
  /** CPU time of the process so far. */
  cpuMs: { params: object; result: number };
}

type CommandMap<Commands> = { [C in keyof Commands]: { params: object; result: unknown } };

export interface JavaEvent {
  readonly event: string;
  /** In ms since 1970. */
  readonly at: number;
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

export interface JavaLaunch {
  readonly classpath: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly compiles: Compiles;
}

export type JavaChild = ChildProcessByStdio<Writable, Readable, Readable>;

/** Starts a Java program of the tests. */
export const launchJava = ({ classpath, program, args, compiles }: JavaLaunch): JavaChild => {
  const quick = compiles === 'soon' ? ['-XX:TieredStopAtLevel=1'] : [];
  const jvm = ['-Xmx256m', '-XX:+UseSerialGC', ...quick, '-cp', classpath];
  return spawn('java', [...jvm, program, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
};

/** A Java process that runs the commands of a test, one JSON object a line. It never outlives the test process. */
export abstract class JavaProcess<
  Commands extends CommandMap<Commands> & CommonCommands,
  Event extends JavaEvent = JavaEvent,
> implements AsyncDisposable {
  private readonly pending = new Map<number, Pending>();
  private readonly seen: Event[] = [];
  private commands = 0;
  private text = '';
  private over: Error | undefined;

  protected constructor(private readonly child: JavaChild) {
    guardProcess(child);
    child.stdin.on('error', () => undefined);
    child.stderr.on('data', (chunk: Buffer) => (this.text += chunk.toString()));
    createInterface({ input: child.stdout }).on('line', (line) =>
      this.received(JSON.parse(line) as Reply | Event),
    );
    child.once('exit', (code, signal) => {
      this.over = new Error(`the Java side has ended with ${code ?? signal}:\n${this.text}`);
      for (const { reject } of this.pending.values()) reject(this.over);
    });
  }

  /** Resolves when the process is connected. */
  protected async booted(): Promise<void> {
    await within(BOOT_MS, this.replyTo(0), 'the start of the Java side');
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** What it has logged. */
  get log(): string {
    return this.text;
  }

  /** What happened without a command, in order. */
  get events(): readonly Event[] {
    return this.seen;
  }

  send<C extends keyof Commands>(command: C, params: Commands[C]['params']): Promise<Commands[C]['result']> {
    const id = (this.commands += 1);
    const result = this.replyTo(id);
    this.child.stdin.write(`${JSON.stringify({ id, do: command, ...params })}\n`);
    return result;
  }

  /** Resolves when a thread sleeps until it is notified that the lock that it waits for is free. */
  async asleep(thread = 'main'): Promise<void> {
    await until(() => this.send('sleeps', { of: thread, thread: 'observer' }), {
      what: `the thread "${thread}" of Java sleeps`,
    });
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

  private received(line: Reply | Event): void {
    if ('event' in line) {
      this.seen.push(line);
      return;
    }
    const { id, result, error } = line;
    const pending = this.pending.get(id);
    this.pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new Error(error));
  }
}
