import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { onPath } from '../../../.ci/process.mjs';
import { selfSignedCertificate, type Certificate } from '../certificate.js';
import { freePort } from '../loopback.js';
import { ADMIN, writeRedisConfiguration, type RedisServerOptions } from './redis-configuration.js';
import { serverFolder, ServerProcess, startOnFreePorts } from './server-process.js';

export type { RedisServerOptions } from './redis-configuration.js';

/** Whether the servers can tell those of one slot only: since Redis 7. */
export const canShard = (): boolean => {
  const said = execFileSync(redisProgram(), ['--version'], { encoding: 'utf8' });
  return Number(/ v=(\d+)/.exec(said)?.[1]) >= 7;
};

/** `TEST_REDIS_SERVER` says which one; `npm run test:matrix` has several. */
export const redisProgram = (): string => {
  const program = process.env['TEST_REDIS_SERVER'] || onPath('redis-server', 'valkey-server');
  if (program) return program;
  throw new Error(
    'no redis-server and no valkey-server on the PATH: install one (npm run setup does so where it may, as root with apt-get)',
  );
};

/**
 * A real Redis (or Valkey) server of one test, on a port of its own on the loopback interface.
 *
 * @example
 * await using server = await RedisServer.start({ appendFsync: 'always' });
 * await server.kill('SIGKILL');
 * await server.restart();
 */
export class RedisServer extends ServerProcess {
  private constructor(
    private readonly options: RedisServerOptions,
    folder: string,
    port: number,
    /** The server's certificate and its key; undefined without TLS. */
    readonly certificate: Certificate | undefined,
  ) {
    super('Redis', folder, port, options.equipment);
  }

  /** Starts a server and resolves once it answers. */
  static start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const certificate = options.tls === true ? selfSignedCertificate() : options.tls || undefined;
    const make = async (): Promise<RedisServer> => {
      const folder = await serverFolder('redis', options.root);
      return new RedisServer(options, folder, await freePort({ withBus: options.cluster }), certificate);
    };
    return startOnFreePorts(make, (server) => server.begin());
  }

  /** Starts several servers; ends them all when one of them does not start. */
  static async startAll(options: readonly RedisServerOptions[]): Promise<RedisServer[]> {
    const started = await Promise.allSettled(options.map((one) => RedisServer.start(one)));
    const servers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const failed = started.find((one) => one.status === 'rejected');
    if (!failed) return servers;
    await Promise.all(servers.map((server) => server.stop()));
    throw failed.reason;
  }

  /** `redis://` or, with TLS, `rediss://`, with the default user's password when there is one. */
  get url(): string {
    const password =
      this.options.password === undefined ? '' : `:${encodeURIComponent(this.options.password)}@`;
    return `${this.options.tls ? 'rediss' : 'redis'}://${password}${this.host}:${this.port}`;
  }

  /** Options for a client of the test's own, with address, password and TLS of this server. */
  clientOptions(): RedisOptions {
    return {
      host: this.host,
      port: this.port,
      ...(this.options.password !== undefined && { password: this.options.password }),
      ...(this.certificate && { tls: { ca: this.certificate.cert } }),
    };
  }

  /** A client of an administrator, whom ACL rules and passwords under test do not bind. Nothing is sent twice. */
  adminClient(options: RedisOptions = {}): Redis {
    const client = new Redis({
      ...{ ...this.clientOptions(), ...ADMIN },
      ...{ protocol: 2, disableClientInfo: true, enableReadyCheck: false, maxRetriesPerRequest: 0 },
      ...options,
    });
    // Without a listener ioredis prints what went wrong. A server that is down on purpose is no news.
    client.on('error', () => undefined);
    return client;
  }

  /**
   * Sends one command as the administrator, on a connection of its own. Resolves with the reply as RESP2 has it; an
   * error reply rejects.
   *
   * @example
   * await server.cli('CONFIG', 'SET', 'maxmemory', '1');
   */
  async cli(...command: readonly [string, ...(string | number)[]]): Promise<unknown> {
    const client = this.adminClient({ lazyConnect: true, retryStrategy: () => null });
    try {
      await client.connect();
      const [name, ...parameters] = command;
      return await client.call(name, ...parameters);
    } catch (error) {
      throw new Error(`${command.join(' ')}: ${(error as Error).message}`, { cause: error });
    } finally {
      client.disconnect();
    }
  }

  /** `cli`, for replies that are text: INFO, CLIENT LIST, GET. */
  async text(...command: readonly [string, ...(string | number)[]]): Promise<string> {
    const reply = await this.cli(...command);
    if (typeof reply !== 'string')
      throw new Error(`${command.join(' ')}: expected text, got ${JSON.stringify(reply)}`);
    return reply;
  }

  /**
   * Starts the server again on its port, ending it first when it still runs. With `keepData` (the default) a running
   * server saves its data before. After a kill it has what its append-only file has. Without, it starts empty.
   */
  async restart({ keepData = true }: { keepData?: boolean } = {}): Promise<void> {
    if (this.isRunning) {
      if (keepData && !this.options.appendFsync) await this.cli('SAVE');
      await this.kill('SIGKILL');
    }
    if (!keepData) {
      for (const entry of await readdir(this.folder)) await rm(join(this.folder, entry), { recursive: true });
    }
    await this.begin();
  }

  private async begin(): Promise<void> {
    const { options, folder } = this;
    const written = join(folder, 'redis.conf');
    // A sentinel writes down there what it knows.
    const configuration =
      options.sentinel && existsSync(written)
        ? written
        : await writeRedisConfiguration(folder, this, options);
    const command = [redisProgram(), configuration, ...(options.sentinel ? ['--sentinel'] : [])];
    await this.launch(command, () => this.isReady());
  }

  // The answer has to come from our process: had another one taken the port, it would answer a PING as well.
  private async isReady(): Promise<boolean> {
    const renamed = this.options.config
      ?.map((line) => /^rename-command info (\S+)$/.exec(line)?.[1])
      .find(Boolean);
    const info = await this.text(renamed ?? 'INFO');
    const hasItsData = this.options.sentinel || info.includes('\r\nloading:0\r\n');
    return info.includes(`process_id:${this.pid}\r\n`) && hasItsData;
  }
}
