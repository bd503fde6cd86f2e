import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../async.js';
import { LOOPBACK } from '../loopback.js';
import { guardFolder, guardProcess } from '../process-guard.js';
import { SCRATCH } from '../scratch.js';

const START_TIMEOUT_MS = 30_000;
const START_ATTEMPTS = 10;

export type ServerSignal = 'SIGKILL' | 'SIGTERM' | 'SIGQUIT' | 'SIGINT' | 'SIGSTOP' | 'SIGCONT';

/** What one server is started with, so that a test can set its clock or let its disk fail. */
export interface Equipment {
  /** Environment variables of the server process, beside those of this one. */
  readonly environment: Readonly<Record<string, string>>;
  /** Called with the id of each process of the server. */
  serves(pid: number): void;
  /** Called when the server has ended for good. */
  cleanUp(): void;
}

export interface ServerOptions {
  readonly equipment?: Equipment | undefined;
  /** Folder for its files. Default: in memory where the machine offers it, so that no commit waits for a disk. */
  readonly root?: string;
}

class PortTakenError extends Error {}

/** Makes a folder for the files of a server. */
export const serverFolder = async (name: string, root = SCRATCH): Promise<string> => {
  const folder = await mkdtemp(join(root, `nest-redis-lock-${name}-`));
  guardFolder(folder);
  return folder;
};

/** Makes a server and starts it, again with other ports when another program has taken one of its ports. */
export const startOnFreePorts = async <S extends { stop(): Promise<void> }>(
  make: () => Promise<S>,
  start: (server: S) => Promise<void>,
): Promise<S> => {
  for (let attempt = 1; ; attempt += 1) {
    const server = await make();
    try {
      await start(server);
      return server;
    } catch (error) {
      await server.stop();
      if (!(error instanceof PortTakenError) || attempt === START_ATTEMPTS) throw error;
    }
  }
};

/** Whether SIGSTOP has reached a process: on a machine with `/proc` this comes a little later. */
const hasStopped = async (pid: number): Promise<boolean> =>
  / T /.test(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ' T '));

/** A server of one test: a process on a port of its own on the loopback interface. It never outlives this process. */
export abstract class ServerProcess implements AsyncDisposable {
  readonly host = LOOPBACK;
  private child: ChildProcess | undefined;
  private output = '';
  private saidBefore = 0;
  private paused = false;

  protected constructor(
    private readonly name: string,
    /** Its files, which `stop` removes. */
    protected readonly folder: string,
    /** The port, the same again after a restart. */
    readonly port: number,
    private readonly equipment?: Equipment,
  ) {}

  /** The process id. Throws while the server is down. */
  get pid(): number {
    if (!this.isRunning || this.child?.pid === undefined) throw new Error(`${this.title} is not running`);
    return this.child.pid;
  }

  /** Whether the process exists; a paused one does. */
  get isRunning(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Whether the process is between SIGSTOP and SIGCONT. */
  get isPaused(): boolean {
    return this.isRunning && this.paused;
  }

  /** What the server has printed, over all its starts. */
  get log(): string {
    return this.output;
  }

  /** What it has printed since its last start. */
  get said(): string {
    return this.output.slice(this.saidBefore);
  }

  /** Sends a signal. Resolves when the process is gone, or has stopped. The data stay for `restart`. */
  async kill(signal: ServerSignal): Promise<void> {
    const { child, pid } = this;
    const goesOn = signal === 'SIGSTOP' || signal === 'SIGCONT';
    const gone = goesOn ? undefined : once(child!, 'exit');
    child!.kill(signal);
    this.paused = signal === 'SIGSTOP';
    if (this.paused) await until(() => hasStopped(pid), { what: `${this.title} stops` });
    await gone;
  }

  /** Ends the server and removes its files. Safe to call twice. */
  async stop(): Promise<void> {
    if (this.isRunning) await this.end();
    this.equipment?.cleanUp();
    await rm(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Returns the error for a server that has ended by itself, with what it has printed since its start. */
  endedEarly(): Error {
    const { said } = this;
    const message = `${this.title} ended before it was ready:\n${said}`;
    return /address already in use/i.test(said) ? new PortTakenError(message) : new Error(message);
  }

  protected end(): Promise<void> {
    return this.kill('SIGKILL');
  }

  /** Starts the server. Resolves when it is ready, and rejects when it ends before. */
  protected async launch(
    command: readonly string[],
    isReady: () => Promise<boolean>,
    options?: SpawnOptions,
  ): Promise<void> {
    const child = this.run(command, options);
    let failure: Error | undefined;
    child.once('error', (error) => (failure = error));
    // 'close' and not 'exit': by then all output has been read.
    child.once('close', () => (failure ??= this.endedEarly()));
    await until(async () => failure !== undefined || (this.isRunning && (await isReady())), {
      timeoutMs: START_TIMEOUT_MS,
      what: `${this.title} is ready`,
    });
    if (failure) throw failure;
  }

  /** Runs a program of the server. */
  protected run([program, ...args]: readonly string[], options: SpawnOptions = {}): ChildProcess {
    this.saidBefore = this.output.length;
    this.paused = false;
    const child = spawn(program!, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...options,
      env: { ...process.env, ...this.equipment?.environment, ...options.env },
    });
    this.child = child;
    guardProcess(child);
    if (child.pid !== undefined) this.equipment?.serves(child.pid);
    const collect = (chunk: Buffer): void => void (this.output += chunk.toString());
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    return child;
  }

  private get title(): string {
    return `the ${this.name} server on port ${this.port}`;
  }
}
