import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onPath } from '../../../.ci/process.mjs';
import { zookeeperClassPath } from '../../../.ci/zookeeper.mjs';
import { selfSignedCertificate, type Certificate } from '../certificate.js';
import { accepts, freePort } from '../loopback.js';
import { serverFolder, ServerProcess, startOnFreePorts } from './server-process.js';
import {
  javaArguments,
  writeZooKeeperConfiguration,
  type Membership,
  type ZooKeeperServerOptions,
} from './zookeeper-configuration.js';

export type { ZooKeeperServerOptions } from './zookeeper-configuration.js';

export type ZooKeeperCommand =
  'ruok' | 'srvr' | 'mntr' | 'cons' | 'wchp' | 'wchs' | 'wchc' | 'dump' | 'stat' | 'envi';

export type ZooKeeperMode = 'standalone' | 'leader' | 'follower';

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
export class ZooKeeperServer extends ServerProcess {
  private readonly programs = programs();

  private constructor(
    private readonly options: ZooKeeperServerOptions,
    folder: string,
    port: number,
    /** The port for TLS; undefined without it. */
    readonly tlsPort: number | undefined,
    /** The server's certificate and its key; undefined without TLS. */
    readonly certificate: Certificate | undefined,
    private readonly membership: Membership | undefined,
  ) {
    super('ZooKeeper', folder, port, options.equipment);
  }

  /** Starts a server and resolves once it serves requests. */
  static async start(options: ZooKeeperServerOptions = {}): Promise<ZooKeeperServer> {
    return startOnFreePorts(
      () => ZooKeeperServer.prepare(options),
      (server) => server.restart(),
    );
  }

  /** Makes the folder of a server that does not run yet. */
  static async prepare(options: ZooKeeperServerOptions, membership?: Membership): Promise<ZooKeeperServer> {
    const folder = await serverFolder('zookeeper', options.root);
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

  /**
   * Starts the server on its port, with its data, ending it first when it still runs. Resolves when it serves requests.
   * A member of an ensemble only has to reply: without a quorum it serves none.
   */
  async restart(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    const { java, classPath } = this.programs;
    const configuration = await writeZooKeeperConfiguration(this.place, this.options);
    const command = [java, ...javaArguments(classPath, this.place, this.options, configuration)];
    await this.launch(command, () => this.isReady(), { cwd: this.folder });
  }

  private get place() {
    const { folder, port, tlsPort, certificate, membership } = this;
    return { folder, port, tlsPort, certificate, membership };
  }

  // The reply has to come from our process: another program may have taken the port.
  private async isReady(): Promise<boolean> {
    const environment = await this.command('envi', { timeoutMs: LOOK_TIMEOUT_MS });
    if (!environment.includes(`user.dir=${this.folder}\n`)) return false;
    // The port for TLS opens after the other one.
    if (this.tlsPort !== undefined) await accepts(this.tlsPort);
    return this.membership !== undefined || (await this.mode()) !== undefined;
  }
}
