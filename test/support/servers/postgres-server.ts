import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chown } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, type QueryResultRow } from 'pg';
import { postgresProgram } from '../../../.ci/process.mjs';
import { until } from '../async.js';
import { freePort } from '../loopback.js';
import { serverFolder, ServerProcess, startOnFreePorts, type ServerOptions } from './server-process.js';

const MEMORY_FREED_MS = 30_000;

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

/** Returns the rows of the last statement. */
export const lastRows = (reply: unknown): readonly QueryResultRow[] =>
  ((Array.isArray(reply) ? reply.at(-1) : reply) as { rows: QueryResultRow[] }).rows;

export interface PostgresServerOptions extends ServerOptions {
  /** Further settings, as `log_statement=all`. */
  readonly args?: readonly string[];
}

/**
 * A real PostgreSQL server of one test, on a port of its own on the loopback interface.
 *
 * @example
 * await using server = await PostgresServer.start();
 * await server.kill('SIGKILL');
 * await server.restart();
 */
export class PostgresServer extends ServerProcess {
  private readonly user = unprivileged();

  private constructor(
    folder: string,
    port: number,
    private readonly options: PostgresServerOptions,
  ) {
    super('PostgreSQL', folder, port, options.equipment);
  }

  /** Starts a server with a database `app` that belongs to a user `app`. */
  static start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    return PostgresServer.startWith(options, async (server) => {
      await server.make('initdb', [
        ...['--username', 'postgres', '--encoding', 'UTF8', '--locale', 'C'],
        ...['--auth-local', 'trust', '--auth-host', 'scram-sha-256', '--no-sync', '--no-instructions'],
      ]);
      await server.restart();
      await server.admin("CREATE USER app PASSWORD 'secret'");
      await server.admin('CREATE DATABASE app OWNER app');
    });
  }

  /** Starts a standby that streams from another server. */
  static standbyOf({ folder, port }: PostgresServer): Promise<PostgresServer> {
    return PostgresServer.startWith({}, async (server) => {
      await server.make('pg_basebackup', [
        ...['--host', folder, '--port', String(port), '--username', 'postgres'],
        ...['--write-recovery-conf', '--checkpoint=fast', '--no-sync'],
      ]);
      await server.restart();
    });
  }

  private static startWith(
    options: PostgresServerOptions,
    start: (server: PostgresServer) => Promise<void>,
  ): Promise<PostgresServer> {
    const make = async (): Promise<PostgresServer> =>
      new PostgresServer(await serverFolder('postgres', options.root), await freePort(), options);
    return startOnFreePorts(make, start);
  }

  get uri(): string {
    return this.uriOf('app', 'secret');
  }

  uriOf(user: string, password: string): string {
    return `postgres://${user}:${password}@${this.host}:${this.port}/app`;
  }

  /** Runs statements as the administrator, in the database `postgres`. Resolves with the rows of the last one. */
  async admin(statements: string): Promise<readonly QueryResultRow[]> {
    const client = await this.adminConnection();
    try {
      return lastRows(await client.query(statements));
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

  /** Starts the server on its port, with its data, ending it first when it still runs. */
  async restart(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    const settings = [
      `listen_addresses=${this.host}`,
      `port=${this.port}`,
      `unix_socket_directories=${this.folder}`,
      'shared_buffers=32MB',
      // Otherwise a server that is killed leaves memory behind.
      'dynamic_shared_memory_type=mmap',
      ...(this.options.args ?? []),
    ];
    const command = [programOf('postgres'), '-D', this.data, ...settings.flatMap((one) => ['-c', one])];
    const connects = async (): Promise<boolean> => {
      await (await this.adminConnection()).end();
      return true;
    };
    const launched = () => this.launch(command, connects, this.spawnOptions).then(() => true);
    // The processes of the killed server end a little later, and release its memory.
    const launchedLater = () =>
      launched().catch((error: Error) => (error.message.includes('shared memory block') ? undefined : error));
    const outcome = await until(launchedLater, { timeoutMs: MEMORY_FREED_MS });
    if (outcome !== true) throw outcome;
  }

  /** Unlike SIGKILL, SIGQUIT ends the processes of the connections first; a stopped server does not get it. */
  protected override async end(): Promise<void> {
    await this.kill('SIGCONT');
    await this.kill('SIGQUIT');
  }

  private get data(): string {
    return join(this.folder, 'data');
  }

  private get spawnOptions() {
    return { ...this.user, cwd: this.folder };
  }

  /** Fills the folder of the data. */
  private async make(program: string, args: readonly string[]): Promise<void> {
    const { uid, gid } = this.user;
    if (uid !== undefined) await chown(this.folder, uid, gid!);
    const child = this.run([programOf(program), '--pgdata', this.data, ...args], this.spawnOptions);
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`${program} failed:\n${this.log}`);
  }
}
