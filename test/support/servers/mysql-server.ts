import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { migrationOf } from '../../../lib/stores/mysql/mysql-migration.js';
import { until } from '../async.js';
import { freePort, LOOPBACK } from '../loopback.js';
import { guardFolder, guardProcess } from '../process-guard.js';
import { SCRATCH } from '../scratch.js';
import { mysqlProgram } from './mysql-program.js';

const START_TIMEOUT_MS = 30_000;
/** Statements that make the system's own tables, in the order of MariaDB; from 11 on the names begin with its own. */
const BOOTSTRAP = [
  /^(mysql|mariadb)_system_tables\.sql$/,
  /^(mysql|mariadb)_performance_tables\.sql$/,
  /^(mysql|mariadb)_system_tables_data\.sql$/,
  /^maria_add_gis_sp_bootstrap\.sql$/,
];

export interface MysqlServerOptions {
  /** Further options of the program, as `--read-only=1`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Called with the id of each process of the server. */
  readonly started?: (pid: number) => void;
  /** Folder for its files. Default: in memory where the machine offers it, so that no commit waits for a disk. */
  readonly root?: string;
}

/**
 * A real MariaDB server of one test, on a port of its own on the loopback interface.
 *
 * @example
 * await using server = await MysqlServer.start();
 * await server.kill('SIGKILL');
 * await server.restart();
 */
export class MysqlServer implements AsyncDisposable {
  readonly host = LOOPBACK;
  private readonly program = mysqlProgram();
  private child: ChildProcess | undefined;
  private output = '';

  private constructor(
    private readonly folder: string,
    readonly port: number,
    private readonly options: MysqlServerOptions,
  ) {}

  /** Starts a server with a database `app` and a user `app` that may do anything in it. */
  static async start(options: MysqlServerOptions = {}): Promise<MysqlServer> {
    const folder = await mkdtemp(join(options.root ?? SCRATCH, 'nest-redis-lock-mysql-'));
    guardFolder(folder);
    const server = new MysqlServer(folder, await freePort(), options);
    await server.bootstrap();
    await server.restart();
    await server.admin(
      "CREATE DATABASE app; CREATE USER 'app'@'%' IDENTIFIED BY 'secret'; GRANT ALL ON app.* TO 'app'@'%'",
    );
    return server;
  }

  /** Creates the table of the locks. */
  async migrate(): Promise<void> {
    await this.admin(`USE app; ${migrationOf('nest_lock')}`);
  }

  get uri(): string {
    return this.uriOf('app', 'secret');
  }

  uriOf(user: string, password: string): string {
    return `mysql://${user}:${password}@${this.host}:${this.port}/app`;
  }

  get isRunning(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** What the server has printed, over all its starts. */
  get log(): string {
    return this.output;
  }

  /** Runs statements as the administrator, and resolves with the rows of the last one. */
  async admin(statements: string): Promise<readonly RowDataPacket[]> {
    const connection = await this.adminConnection();
    try {
      const [reply] = await connection.query<RowDataPacket[] | RowDataPacket[][]>(statements);
      const last = reply.at(-1);
      return Array.isArray(last) ? last : (reply as RowDataPacket[]);
    } finally {
      connection.destroy();
    }
  }

  adminConnection(database = 'mysql'): Promise<Connection> {
    return createConnection({ socketPath: this.socket, user: 'root', database, multipleStatements: true });
  }

  /** Sends a signal. Resolves when the process is gone, or has stopped. The data stays for `restart`. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const { child } = this;
    if (!child || !this.isRunning) throw new Error(`cannot send ${signal}: the server is not running`);
    const ends = signal === 'SIGKILL' || signal === 'SIGTERM';
    const gone = ends ? once(child, 'exit') : undefined;
    child.kill(signal);
    await gone;
    const hasStopped = async () => / T /.test(await readFile(`/proc/${child.pid}/stat`, 'utf8'));
    if (signal === 'SIGSTOP') await until(hasStopped, { what: 'the server stops' });
  }

  /** Starts the server on its port, with its data, ending it first when it still runs. */
  async restart(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    this.launch([
      `--socket=${this.socket}`,
      `--port=${this.port}`,
      `--bind-address=${this.host}`,
      '--skip-name-resolve',
      '--innodb-buffer-pool-size=32M',
      ...(this.options.args ?? []),
    ]);
    const connects = async (): Promise<boolean> => {
      if (!this.isRunning) throw new Error(`the server has ended:\n${this.output}`);
      const connection = await this.adminConnection().catch(() => undefined);
      connection?.destroy();
      return connection !== undefined;
    };
    await until(connects, { what: 'the server answers', timeoutMs: START_TIMEOUT_MS });
  }

  /** Ends the server and removes its files. Safe to call twice. */
  async stop(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    await rm(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private get socket(): string {
    return join(this.folder, 'socket');
  }

  private async bootstrap(): Promise<void> {
    await mkdir(join(this.folder, 'data'));
    const { isMariaDb, shareFolder } = this.program;
    const child = this.launch([isMariaDb ? '--bootstrap' : '--initialize-insecure'], 'pipe');
    const gone = once(child, 'exit');
    if (isMariaDb) {
      const files = await readdir(shareFolder);
      const scripts = BOOTSTRAP.map((name) => files.find((file) => name.test(file))!);
      const texts = await Promise.all(scripts.map((name) => readFile(join(shareFolder, name), 'utf8')));
      child.stdin!.write(['create database mysql;', 'use mysql;', ...texts].join('\n'));
    }
    child.stdin!.end();
    const [code] = (await gone) as [number | null];
    if (code !== 0) throw new Error(`the server could not make its tables:\n${this.output}`);
  }

  private launch(args: readonly string[], stdin: 'pipe' | 'ignore' = 'ignore'): ChildProcess {
    const { command, baseFolder, shareFolder, isMariaDb } = this.program;
    const [program, ...before] = command;
    const child = spawn(
      program!,
      [
        ...before,
        '--no-defaults',
        `--basedir=${baseFolder}`,
        `--datadir=${join(this.folder, 'data')}`,
        `--lc-messages-dir=${shareFolder}`,
        `--character-sets-dir=${join(shareFolder, 'charsets')}`,
        // A server that starts removes files of others from a shared folder.
        `--tmpdir=${this.folder}`,
        // Options with this prefix are for the servers that know them.
        '--loose-innodb-log-file-size=16M',
        ...(isMariaDb
          ? []
          : [
              ...['--secure-file-priv=NULL', '--mysqlx=OFF', '--performance-schema=OFF'],
              `--plugin-dir=${join(baseFolder, 'lib', 'mysql', 'plugin')}`,
            ]),
        ...(process.getuid?.() === 0 ? ['--user=root'] : []),
        ...args,
      ],
      { stdio: [stdin, 'pipe', 'pipe'], env: { ...process.env, ...this.options.env } },
    );
    this.child = child;
    guardProcess(child);
    if (child.pid !== undefined) this.options.started?.(child.pid);
    const collect = (chunk: Buffer): void => void (this.output += chunk.toString());
    child.stdout!.on('data', collect);
    child.stderr!.on('data', collect);
    return child;
  }
}
