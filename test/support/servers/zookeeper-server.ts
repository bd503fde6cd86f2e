import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onPath } from '../../../.ci/process.mjs';
import { zookeeperClassPath } from '../../../.ci/zookeeper.mjs';
import { until } from '../async.js';
import { selfSignedCertificate, type Certificate } from '../certificate.js';
import { freePort, LOOPBACK } from '../loopback.js';
import { guardFolder, guardProcess } from '../process-guard.js';
import { SCRATCH } from '../scratch.js';
import {
  javaArguments,
  writeZooKeeperConfiguration,
  type Membership,
  type ZooKeeperServerOptions,
} from './zookeeper-configuration.js';
import { accepts, endedEarly, onFreePorts } from './zookeeper-ports.js';

export type { ZooKeeperServerOptions } from './zookeeper-configuration.js';

export type ZooKeeperCommand =
  'ruok' | 'srvr' | 'mntr' | 'cons' | 'wchp' | 'wchs' | 'wchc' | 'dump' | 'stat' | 'envi';

export type ZooKeeperMode = 'standalone' | 'leader' | 'follower';

const START_TIMEOUT_MS = 30_000;
const COMMAND_TIMEOUT_MS = 5_000;
/** A paused server accepts connections, and replies to nothing. */
const LOOK_TIMEOUT_MS = 1_000;

const programs = (): { readonly java: string; readonly classPath: string } => {
  const java = onPath('java');
  const classPath = zookeeperClassPath();
  if (java && classPath) return { java, classPath };
  throw new Error(
    `no ${java ? 'jars of ZooKeeper' : 'java on the PATH'}: npm run setup provides it, or says how`,
  );
};

/**
 * A real ZooKeeper server of one test, on a port of its own on the loopback interface.
 *
 * @example
 * await using server = await ZooKeeperServer.start({ containerCheckMs: 100 });
 * await server.kill('SIGKILL');
 * await server.restart();
 */
export class ZooKeeperServer implements AsyncDisposable {
  readonly host = LOOPBACK;
  private readonly programs = programs();
  private child: ChildProcess | undefined;
  private output = '';
  private paused = false;

  private constructor(
    private readonly options: ZooKeeperServerOptions,
    private readonly folder: string,
    /** The port, the same again after a restart. */
    readonly port: number,
    /** The port for TLS; undefined without it. */
    readonly tlsPort: number | undefined,
    /** The server's certificate and its key; undefined without TLS. */
    readonly certificate: Certificate | undefined,
    private readonly membership: Membership | undefined,
  ) {}

  /** Starts a server and resolves once it serves requests. */
  static async start(options: ZooKeeperServerOptions = {}): Promise<ZooKeeperServer> {
    return onFreePorts(async () => {
      const server = await ZooKeeperServer.prepare(options);
      try {
        await server.restart();
        return server;
      } catch (error) {
        await server.stop();
        throw error;
      }
    });
  }

  /** Makes the folder of a server that does not run yet. */
  static async prepare(options: ZooKeeperServerOptions, membership?: Membership): Promise<ZooKeeperServer> {
    const folder = await mkdtemp(join(options.root ?? SCRATCH, 'nest-redis-lock-zookeeper-'));
    guardFolder(folder);
    await mkdir(join(folder, 'data'));
    const { tls = false } = options;
    const port = membership?.members[membership.id - 1]?.client ?? (await freePort());
    const tlsPort = tls ? await freePort() : undefined;
    const certificate = tls === true ? selfSignedCertificate() : tls || undefined;
    return new ZooKeeperServer(options, folder, port, tlsPort, certificate, membership);
  }

  /** Host and port, as a connect string has them. */
  get address(): string {
    return `${this.host}:${this.port}`;
  }

  /** Host and port for TLS. Throws without TLS. */
  get tlsAddress(): string {
    if (this.tlsPort === undefined) throw new Error('the ZooKeeper server has no port for TLS');
    return `${this.host}:${this.tlsPort}`;
  }

  /** Ports for the other members of the ensemble. */
  get peerPorts(): readonly number[] {
    const own = this.membership?.members[this.membership.id - 1];
    return own ? [own.quorum, own.election] : [];
  }

  /** The process id. Throws while the server is down. */
  get pid(): number {
    if (!this.isRunning || this.child?.pid === undefined)
      throw new Error('the ZooKeeper server is not running');
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

  /** Warnings and errors that the server has printed, over all its starts. */
  get log(): string {
    return this.output;
  }

  /** Sends a command of four letters on a connection of its own. Resolves with the reply. */
  async command(name: ZooKeeperCommand, { timeoutMs = COMMAND_TIMEOUT_MS } = {}): Promise<string> {
    const socket = connect({ host: this.host, port: this.port });
    const late = new Error(`${name}: no reply from port ${this.port} within ${timeoutMs} ms`);
    const timer = setTimeout(() => socket.destroy(late), timeoutMs);
    try {
      socket.write(name);
      const reply = await text(socket);
      if (reply === '') throw new Error(`${name}: the server on port ${this.port} closed without a reply`);
      return reply;
    } finally {
      clearTimeout(timer);
      socket.destroy();
    }
  }

  /** Resolves with the role of the server; undefined while it serves no requests. */
  async mode(): Promise<ZooKeeperMode | undefined> {
    if (!this.isRunning) return undefined;
    const reply = await this.command('srvr', { timeoutMs: LOOK_TIMEOUT_MS }).catch(() => '');
    return /^Mode: (\w+)/m.exec(reply)?.[1] as ZooKeeperMode | undefined;
  }

  /** Sends a signal. For one that ends the server it resolves when the process is gone. The data stays for `restart`. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const { child } = this;
    if (!child || !this.isRunning)
      throw new Error(`cannot send ${signal}: the ZooKeeper server is not running`);
    const gone = once(child, 'exit');
    child.kill(signal);
    this.paused = signal === 'SIGSTOP';
    if (signal === 'SIGKILL' || signal === 'SIGTERM') await gone;
  }

  /**
   * Starts the server on its port, with its data, ending it first when it still runs. Resolves when it serves requests.
   * A member of an ensemble only has to reply: without a quorum it serves none.
   */
  async restart(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    const from = this.output.length;
    const child = this.launch(await writeZooKeeperConfiguration(this.place, this.options));
    let failure: Error | undefined;
    child.once('error', (error) => (failure = error));
    // 'close' and not 'exit': by then all output has been read.
    child.once('close', () => (failure ??= endedEarly(this.port, this.output.slice(from))));
    await until(async () => failure !== undefined || (await this.isReady()), {
      timeoutMs: START_TIMEOUT_MS,
      what: `the ZooKeeper server on port ${this.port} is ready`,
    });
    if (failure) throw failure;
  }

  /** Ends the server and removes its files. Safe to call twice. */
  async stop(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    await rm(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private launch(configuration: string): ChildProcess {
    const { java, classPath } = this.programs;
    const child = spawn(java, javaArguments(classPath, this.place, this.options, configuration), {
      cwd: this.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    this.paused = false;
    guardProcess(child);
    if (child.pid !== undefined) this.options.started?.(child.pid);
    const collect = (chunk: Buffer): void => void (this.output += chunk.toString());
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    return child;
  }

  private get place() {
    const { folder, port, tlsPort, certificate, membership } = this;
    return { folder, port, tlsPort, certificate, membership };
  }

  // The reply has to come from our process: another program may have taken the port.
  private async isReady(): Promise<boolean> {
    if (!this.isRunning) return false;
    const environment = await this.command('envi', { timeoutMs: LOOK_TIMEOUT_MS });
    if (!environment.includes(`user.dir=${this.folder}\n`)) return false;
    // The port for TLS opens after the other one.
    if (this.tlsPort !== undefined) await accepts(this.tlsPort);
    return this.membership !== undefined || (await this.mode()) !== undefined;
  }
}
