import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { guardProcess } from './process-guard.js';
import { until } from './async.js';

/** A message between a test and its worker: plain data, told apart by `type`. */
export interface WorkerMessage {
  readonly type: string;
}

export interface WorkerOptions {
  /** Arguments after the module: `process.argv.slice(2)` there. */
  readonly args?: readonly string[];
  /** Environment variables beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** What `nest-redis-lock` is in the worker: the source in lib/ (default), or the built package in dist/. */
  readonly library?: 'source' | 'built';
}

export interface WorkerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type OfType<M extends WorkerMessage, T extends M['type']> = Extract<M, { readonly type: T }>;

const loader = (library: 'source' | 'built') =>
  new URL(`./typescript/register${library === 'source' ? '-with-source' : ''}.mjs`, import.meta.url).href;

/**
 * A process of its own that runs a TypeScript module, decorators included, and exchanges messages with the test.
 * In the module, `workerChannel` of `worker-channel.ts` is the other end. It never outlives the test process.
 *
 * @example
 * await using worker = TestWorker.start<ToWorker, FromWorker>(new URL('../bench/processes/holder.ts', import.meta.url));
 * worker.send({ type: 'hold', key: 'order' });
 * const { token } = await worker.next('holding');
 * await worker.kill('SIGKILL');
 */
export class TestWorker<In extends WorkerMessage, Out extends WorkerMessage> implements AsyncDisposable {
  private readonly received: Out[] = [];
  private readonly unread: Out[] = [];
  private text = '';
  private exit: WorkerExit | undefined;
  /** Resolves when the process has ended, in whatever way. */
  readonly exited: Promise<WorkerExit>;

  private constructor(private readonly child: ChildProcess) {
    guardProcess(child);
    child.on('message', (message) => {
      this.received.push(message as Out);
      this.unread.push(message as Out);
    });
    // Not the child's 'close', which would say the same: Node 20 does not emit it after a disconnect from this side.
    const printed = [child.stdout, child.stderr].map(
      (stream) =>
        new Promise<void>((resolve) => {
          stream?.on('data', (chunk: Buffer) => {
            this.text += chunk.toString();
          });
          stream?.once('close', () => resolve());
        }),
    );
    this.exited = new Promise((resolve) => {
      const end = async (exit: WorkerExit) => {
        await Promise.all(printed);
        this.exit = exit;
        resolve(exit);
      };
      child.once('error', (error) => {
        this.text += `${error.message}\n`;
        if (child.pid === undefined) void end({ code: null, signal: null });
      });
      child.once('exit', (code, signal) => void end({ code, signal }));
    });
  }

  static start<In extends WorkerMessage, Out extends WorkerMessage>(
    module: URL,
    { args = [], env = {}, library = 'source' }: WorkerOptions = {},
  ): TestWorker<In, Out> {
    const child = fork(fileURLToPath(module), args, {
      execArgv: ['--enable-source-maps', '--import', loader(library)],
      env: { ...process.env, ...env },
      // Keeps undefined, Infinity, Maps and Errors as they are; JSON would not.
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    return new TestWorker<In, Out>(child);
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error(`the worker could not be started: ${this.text}`);
    return this.child.pid;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null && this.exit === undefined;
  }

  /** All messages so far, in order, read or not. */
  get messages(): readonly Out[] {
    return this.received;
  }

  /** What the worker has printed, on both streams. */
  get output(): string {
    return this.text;
  }

  send(message: In): void {
    this.child.send(message, (error) => {
      // Sending to a worker that was killed on purpose is part of many tests.
      if (error && this.isRunning) this.text += `a message was not delivered: ${error.message}\n`;
    });
  }

  /** All messages of one type so far, read or not. */
  all<T extends Out['type']>(type: T): readonly OfType<Out, T>[] {
    return this.received.filter((message): message is OfType<Out, T> => message.type === type);
  }

  /**
   * The first message of this type that `next` has not returned yet; waits for it. Messages of other types are left
   * for later. Rejects, with the worker's output, when the time is over, which a start on a busy machine needs, or when the
   * worker ends without sending it.
   */
  async next<T extends Out['type']>(
    type: T,
    { timeoutMs = 25_000 }: { timeoutMs?: number } = {},
  ): Promise<OfType<Out, T>> {
    const isMeant = (message: Out): message is OfType<Out, T> => message.type === type;
    const found = await until(() => this.unread.find(isMeant) ?? (this.exit && 'ended'), {
      timeoutMs,
      what: `the worker sends '${type}'`,
    }).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}; ${this.account()}`, { cause: error });
    });
    if (found === 'ended') throw new Error(`the worker ended before it sent '${type}'; ${this.account()}`);
    this.unread.splice(this.unread.indexOf(found), 1);
    return found;
  }

  /** Sends a signal. For one that ends the process it resolves when the process is gone. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    if (!this.isRunning) throw new Error(`cannot send ${signal}: ${this.account()}`);
    const gone = once(this.child, 'exit');
    this.child.kill(signal);
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await gone;
  }

  /** Closes the channel, so that the worker ends by itself, and resolves with how it did. */
  async finish({ timeoutMs = 25_000 }: { timeoutMs?: number } = {}): Promise<WorkerExit> {
    if (this.child.connected) this.child.disconnect();
    await until(() => this.exit, { timeoutMs, what: 'the worker ends by itself' }).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}; ${this.account()}`, { cause: error });
    });
    return this.exited;
  }

  /** Ends the process at once if it still runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) this.child.kill('SIGKILL');
    await this.exited;
  }

  private account(): string {
    const state = this.exit
      ? `it ended with ${this.exit.signal ?? `code ${this.exit.code}`}`
      : 'it is running';
    const seen = this.received.map(({ type }) => type).join(', ') || 'nothing';
    return `${state}, sent ${seen}, and printed:\n${this.text || '(nothing)'}`;
  }
}
