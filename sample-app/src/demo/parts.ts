import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Leave, PartMessage } from './part-process.js';

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;

/** A running part. */
export interface Part {
  readonly name: string;
  readonly url: string;
  readonly alive: boolean;
  kill(signal: NodeJS.Signals): void;
  /** Sends a message; does nothing when the part has ended. */
  send(message: Leave): void;
  /** Registers a listener; returns a function that removes it. */
  onMessage(listener: (message: PartMessage) => void): () => void;
  /** Asks the part to end, and waits for that; kills it when it does not. */
  stop(): Promise<void>;
}

/** Starts the processes of the demo, and makes sure that none outlives it. */
export class Parts implements AsyncDisposable {
  private readonly children = new Set<ChildProcess>();
  private isOver = false;
  /** Parts end by themselves when this process is gone, but a stopped one has to be resumed to notice it. */
  private readonly wakeAll = () => this.children.forEach((child) => child.kill('SIGCONT'));

  constructor() {
    process.once('exit', this.wakeAll);
  }

  /** Starts a compiled module of this app as a process; resolves when it reports that it is ready. */
  async start(
    name: string,
    module: string,
    env: Record<string, string> = {},
    args: string[] = [],
  ): Promise<Part> {
    // A start that failed because all parts were ended must not be repeated.
    if (this.isOver) throw new Error(`The ${name} was not started: the demo is over.`);
    const child = fork(fileURLToPath(new URL(module, import.meta.url)), args, {
      env: { ...process.env, ...env },
      execArgv: ['--enable-source-maps', '--disable-warning=ExperimentalWarning'],
      // A process group of its own: Ctrl-C in the terminal reaches this process alone, which then ends the parts in
      // order.
      detached: true,
      // The output of a part on stdout (Valkey's log, Nest's notices) is not needed here; errors are.
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.children.add(child);
    child.once('exit', () => this.children.delete(child));
    const url = await this.untilReady(name, child);
    return {
      name,
      url,
      get alive() {
        return child.exitCode === null && child.signalCode === null;
      },
      kill: (signal) => void child.kill(signal),
      // A part that is killed meanwhile needs no message any more.
      send: (message) => void (child.connected && child.send(message, () => undefined)),
      onMessage: (listener) => {
        child.on('message', listener);
        return () => void child.off('message', listener);
      },
      stop: () => this.stop(child),
    };
  }

  /** Ends every running part. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.isOver = true;
    await Promise.all([...this.children].map((child) => this.stop(child)));
    process.off('exit', this.wakeAll);
  }

  private async untilReady(name: string, child: ChildProcess): Promise<string> {
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<string>((resolve, reject) => {
        const fail = (why: string): void => reject(new Error(`The ${name} did not start: ${why}.`));
        timer = setTimeout(() => fail(`nothing heard for ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
        child.once('error', (error) => fail(error.message));
        child.once('exit', (code, signal) => fail(`it ended with ${signal ?? `code ${code}`}`));
        child.on('message', (message: PartMessage) => {
          if (message.type === 'ready') resolve(message.url);
          if (message.type === 'failed') fail(message.reason);
        });
      });
    } catch (error) {
      child.kill('SIGTERM');
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  private async stop(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    child.kill('SIGCONT');
    child.kill('SIGTERM');
    await ended;
    clearTimeout(timer);
  }
}
