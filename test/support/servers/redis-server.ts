import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { onPath } from '../../../.ci/process.mjs';
import { until } from '../async.js';
import { selfSignedCertificate, type Certificate } from '../certificate.js';
import { freePort, LOOPBACK } from '../loopback.js';
import { guardFolder, guardProcess } from '../process-guard.js';
import { ADMIN, writeRedisConfiguration, type RedisServerOptions } from './redis-configuration.js';
import { SCRATCH } from '../scratch.js';

export type { RedisServerOptions } from './redis-configuration.js';

const START_ATTEMPTS = 10;
const START_TIMEOUT_MS = 15_000;

class PortTakenError extends Error {}

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
export class RedisServer implements AsyncDisposable {
  private child: ChildProcess | undefined;
  private output = '';

  private constructor(
    private readonly options: RedisServerOptions,
    private readonly folder: string,
    /** The server's certificate and its key; undefined without TLS. */
    readonly certificate: Certificate | undefined,
    /** The port, the same again after a restart. */
    public readonly port: number,
  ) {}

  /** Starts a server and resolves once it answers. */
  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const certificate = options.tls === true ? selfSignedCertificate() : options.tls || undefined;
    for (let attempt = 1; ; attempt += 1) {
      const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-redis-'));
      guardFolder(folder);
      const port = await freePort({ withBus: options.cluster ?? false });
      const server = new RedisServer(options, folder, certificate, port);
      try {
        await server.launch();
        return server;
      } catch (error) {
        await server.stop();
        if (!(error instanceof PortTakenError) || attempt === START_ATTEMPTS) throw error;
      }
    }
  }

  readonly host = LOOPBACK;

  /** `redis://` or, with TLS, `rediss://`, with the default user's password when there is one. */
  get url(): string {
    const password =
      this.options.password === undefined ? '' : `:${encodeURIComponent(this.options.password)}@`;
    return `${this.options.tls ? 'rediss' : 'redis'}://${password}${this.host}:${this.port}`;
  }

  /** The process id. Throws while the server is down. */
  get pid(): number {
    if (!this.isRunning || this.child?.pid === undefined) throw new Error('the Redis server is not running');
    return this.child.pid;
  }

  get isRunning(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** What the server has printed, over all its starts. */
  get log(): string {
    return this.output;
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

  /**
   * Sends one command as an administrator who is not bound by the ACL rules and passwords under test, on a
   * connection of its own, and returns the reply as RESP2 has it. An error reply rejects.
   *
   * @example
   * await server.cli('CONFIG', 'SET', 'maxmemory', '1');
   */
  async cli(...command: readonly [string, ...(string | number)[]]): Promise<unknown> {
    const client = new Redis({
      ...this.clientOptions(),
      ...ADMIN,
      protocol: 2,
      lazyConnect: true,
      disableClientInfo: true,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
    // Without a listener ioredis prints what went wrong; here the rejection of connect() says it.
    client.on('error', () => undefined);
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

  /** Sends a signal. For one that ends the server it resolves when the process is gone. The data stays for `restart`. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const { child } = this;
    if (!child || !this.isRunning) throw new Error(`cannot send ${signal}: the Redis server is not running`);
    const gone = once(child, 'exit');
    child.kill(signal);
    if (signal === 'SIGKILL' || signal === 'SIGTERM') await gone;
  }

  /**
   * Starts the server again on its port, ending it first when it still runs. With `keepData` (the default) a running
   * server saves its data before; one that was killed has what its append-only file has. Without, it starts empty.
   */
  async restart({ keepData = true }: { keepData?: boolean } = {}): Promise<void> {
    if (this.isRunning) {
      if (keepData && !this.options.appendFsync) await this.cli('SAVE');
      await this.kill('SIGKILL');
    }
    if (!keepData) {
      for (const entry of await readdir(this.folder)) await rm(join(this.folder, entry), { recursive: true });
    }
    await this.launch();
  }

  /** Ends the server and removes its files. Safe to call twice. */
  async stop(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    await rm(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private async launch(): Promise<void> {
    const started = this.output.length;
    const written = join(this.folder, 'redis.conf');
    // A sentinel writes down there what it knows.
    const configuration =
      this.options.sentinel && existsSync(written)
        ? written
        : await writeRedisConfiguration(this.folder, this, this.options);
    const child = spawn(redisProgram(), [configuration, ...(this.options.sentinel ? ['--sentinel'] : [])], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.options.env },
    });
    this.child = child;
    guardProcess(child);
    const collect = (chunk: Buffer) => {
      this.output += chunk.toString();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    let failure: Error | undefined;
    child.once('error', (error) => {
      failure = error;
    });
    // 'close' and not 'exit': by then all output has been read.
    child.once('close', () => {
      const said = this.output.slice(started);
      const message = `the Redis server on port ${this.port} ended before it was ready:\n${said}`;
      failure ??= /address already in use/i.test(said) ? new PortTakenError(message) : new Error(message);
    });
    await until(async () => failure !== undefined || (await this.isReady(child)), {
      timeoutMs: START_TIMEOUT_MS,
      what: `the Redis server on port ${this.port} is ready`,
    });
    if (failure) throw failure;
  }

  // The answer has to come from our process: had another one taken the port, it would answer a PING as well.
  private async isReady(child: ChildProcess): Promise<boolean> {
    if (!this.isRunning) return false;
    const renamed = this.options.config
      ?.map((line) => /^rename-command info (\S+)$/.exec(line)?.[1])
      .find(Boolean);
    const info = await this.text(renamed ?? 'INFO');
    const hasItsData = this.options.sentinel || info.includes('\r\nloading:0\r\n');
    return info.includes(`process_id:${child.pid}\r\n`) && hasItsData;
  }
}
