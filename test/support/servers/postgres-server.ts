import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, type QueryResultRow } from 'pg';
import { postgresProgram } from '../../../.ci/process.mjs';
import { until } from '../async.js';
import { freePort, LOOPBACK } from '../loopback.js';
import { guardFolder, guardProcess } from '../process-guard.js';
import { SCRATCH } from '../scratch.js';

const START_TIMEOUT_MS = 30_000;

const programOf = (name: string): string => {
  const program = postgresProgram(name);
  if (program) return program;
  throw new Error(
    `no ${name} of PostgreSQL: install it (npm run setup does so where it may, as root with apt-get)`,
  );
};

/** Returns a user for a program that refuses to run as root. */
export const unprivileged = (): { uid?: number; gid?: number } => {
  if (process.getuid?.() !== 0) return {};
  const id = (kind: string): number => Number(execFileSync('id', [kind, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
};

export interface PostgresServerOptions {
  /** Further settings, as `log_statement=all`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Called with the number of each process that starts. */
  readonly started?: (pid: number) => void;
  /** Folder for its files. Default: in memory where the machine offers it, so that no commit waits for a disk. */
  readonly root?: string;
}

/**
 * A real PostgreSQL server of one test, on a port of its own on the loopback interface.
 *
 * @example
 * await using server = await PostgresServer.start();
 * await server.kill('SIGKILL');
 * await server.restart();
 */
export class PostgresServer implements AsyncDisposable {
  readonly host = LOOPBACK;
  private readonly user = unprivileged();
  private child: ChildProcess | undefined;
  private output = '';

  private constructor(
    private readonly folder: string,
    readonly port: number,
    private readonly options: PostgresServerOptions,
  ) {}

  /** Starts a server with a database `app` that belongs to a user `app`. */
  static async start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    const server = await PostgresServer.prepare(options);
    await server.make('initdb', [
      ...['--username', 'postgres', '--encoding', 'UTF8', '--locale', 'C'],
      ...['--auth-local', 'trust', '--auth-host', 'scram-sha-256', '--no-sync', '--no-instructions'],
    ]);
    await server.restart();
    await server.admin("CREATE USER app PASSWORD 'secret'");
    await server.admin('CREATE DATABASE app OWNER app');
    return server;
  }

  /** Starts a standby that streams from another server. */
  static async standbyOf(primary: PostgresServer): Promise<PostgresServer> {
    const server = await PostgresServer.prepare({});
    const { folder, port } = primary;
    await server.make('pg_basebackup', [
      ...['--host', folder, '--port', String(port), '--username', 'postgres'],
      ...['--write-recovery-conf', '--checkpoint=fast', '--no-sync'],
    ]);
    await server.restart();
    return server;
  }

  private static async prepare(options: PostgresServerOptions): Promise<PostgresServer> {
    const folder = await mkdtemp(join(options.root ?? SCRATCH, 'nest-redis-lock-postgres-'));
    guardFolder(folder);
    return new PostgresServer(folder, await freePort(), options);
  }

  get uri(): string {
    return this.uriOf('app', 'secret');
  }

  uriOf(user: string, password: string): string {
    return `postgres://${user}:${password}@${this.host}:${this.port}/app`;
  }

  get isRunning(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** What the server has printed, over all its starts. */
  get log(): string {
    return this.output;
  }

  /** Runs statements as the administrator, in the database `postgres`. Resolves with the rows of the last one. */
  async admin(statements: string): Promise<readonly QueryResultRow[]> {
    const client = await this.adminConnection();
    try {
      const reply: unknown = await client.query(statements);
      const last: unknown = Array.isArray(reply) ? reply.at(-1) : reply;
      return (last as { rows: QueryResultRow[] }).rows;
    } finally {
      await client.end();
    }
  }

  async adminConnection(database = 'postgres'): Promise<Client> {
    const client = new Client({ host: this.folder, port: this.port, user: 'postgres', database });
    // A server that is killed is part of many tests.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  /** Sends a signal. For one that ends the server it resolves when the process is gone. The data stays for `restart`. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGQUIT' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const { child } = this;
    if (!child || !this.isRunning) throw new Error(`cannot send ${signal}: the server is not running`);
    const ends = signal !== 'SIGSTOP' && signal !== 'SIGCONT';
    const gone = ends ? once(child, 'exit') : undefined;
    child.kill(signal);
    await gone;
  }

  /** Starts the server on its port, with its data, ending it first when it still runs. */
  async restart(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    const from = this.output.length;
    this.launch();
    const connects = async (): Promise<boolean> => {
      if (!this.isRunning) {
        // The processes of the killed server end a little later, and release its memory.
        if (!this.output.includes('shared memory block', from))
          throw new Error(`the server has ended:\n${this.output}`);
        this.launch();
      }
      const client = await this.adminConnection().catch(() => undefined);
      await client?.end();
      return client !== undefined;
    };
    await until(connects, { what: 'the server answers', timeoutMs: START_TIMEOUT_MS });
  }

  /** Ends the server and removes its files. Safe to call twice. */
  async stop(): Promise<void> {
    if (this.isRunning) {
      // Unlike SIGKILL, SIGQUIT ends the processes of the connections first; a stopped server does not get it.
      await this.kill('SIGCONT');
      await this.kill('SIGQUIT');
    }
    await rm(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private get data(): string {
    return join(this.folder, 'data');
  }

  /** Fills the folder of the data. */
  private async make(program: string, args: readonly string[]): Promise<void> {
    const { uid, gid } = this.user;
    if (uid !== undefined) await chown(this.folder, uid, gid!);
    const child = this.spawn(program, ['--pgdata', this.data, ...args]);
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`${program} failed:\n${this.output}`);
  }

  private launch(): void {
    const settings = [
      `listen_addresses=${this.host}`,
      `port=${this.port}`,
      `unix_socket_directories=${this.folder}`,
      'shared_buffers=32MB',
      // Otherwise a server that is killed leaves memory behind.
      'dynamic_shared_memory_type=mmap',
      ...(this.options.args ?? []),
    ];
    this.child = this.spawn('postgres', ['-D', this.data, ...settings.flatMap((setting) => ['-c', setting])]);
  }

  private spawn(program: string, args: readonly string[]): ChildProcess {
    const child = spawn(programOf(program), args, {
      ...this.user,
      cwd: this.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.options.env },
    });
    guardProcess(child);
    if (child.pid !== undefined) this.options.started?.(child.pid);
    const collect = (chunk: Buffer): void => void (this.output += chunk.toString());
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    return child;
  }
}
