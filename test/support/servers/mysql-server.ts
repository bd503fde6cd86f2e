import { once } from 'node:events';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { migrationOf } from '../../../lib/stores/mysql/mysql-migration.js';
import { freePort } from '../loopback.js';
import { mysqlProgram } from './mysql-program.js';
import { serverFolder, ServerProcess, startOnFreePorts, type ServerOptions } from './server-process.js';

/** Statements that make the system's own tables, in the order of MariaDB; from 11 on the names begin with its own. */
const BOOTSTRAP = [
  /^(mysql|mariadb)_system_tables\.sql$/,
  /^(mysql|mariadb)_performance_tables\.sql$/,
  /^(mysql|mariadb)_system_tables_data\.sql$/,
  /^maria_add_gis_sp_bootstrap\.sql$/,
];

/** Runs statements, and resolves with the rows of the last one. */
export const lastRows = async (
  connection: Connection,
  statements: string,
): Promise<readonly RowDataPacket[]> => {
  const [reply] = await connection.query<RowDataPacket[] | RowDataPacket[][]>(statements);
  const last = Array.isArray(reply) ? reply.at(-1) : undefined;
  return Array.isArray(last) ? last : (reply as RowDataPacket[]);
};

export interface MysqlServerOptions extends ServerOptions {
  /** Further options of the program, as `--read-only=1`. */
  readonly args?: readonly string[];
}

/**
 * A real MariaDB server of one test, on a port of its own on the loopback interface.
 *
 * @example
 * await using server = await MysqlServer.start();
 * await server.kill('SIGKILL');
 * await server.restart();
 */
export class MysqlServer extends ServerProcess {
  private readonly program = mysqlProgram();

  private constructor(
    folder: string,
    port: number,
    private readonly options: MysqlServerOptions,
  ) {
    super('MariaDB', folder, port, options.equipment);
  }

  /** Starts a server with a database `app` and a user `app` that may do anything in it. */
  static async start(options: MysqlServerOptions = {}): Promise<MysqlServer> {
    const make = async (): Promise<MysqlServer> =>
      new MysqlServer(await serverFolder('mysql', options.root), await freePort(), options);
    return startOnFreePorts(make, async (server) => {
      await server.bootstrap();
      await server.restart();
      await server.admin(
        "CREATE DATABASE app; CREATE USER 'app'@'%' IDENTIFIED BY 'secret'; GRANT ALL ON app.* TO 'app'@'%'",
      );
    });
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

  /** Runs statements as the administrator, and resolves with the rows of the last one. */
  async admin(statements: string): Promise<readonly RowDataPacket[]> {
    const connection = await this.adminConnection();
    try {
      return await lastRows(connection, statements);
    } finally {
      connection.destroy();
    }
  }

  adminConnection(database = 'mysql'): Promise<Connection> {
    return createConnection({ socketPath: this.socket, user: 'root', database, multipleStatements: true });
  }

  /** Starts the server on its port, with its data, ending it first when it still runs. */
  async restart(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
    const command = this.command(
      `--socket=${this.socket}`,
      `--port=${this.port}`,
      `--bind-address=${this.host}`,
      '--skip-name-resolve',
      '--innodb-buffer-pool-size=32M',
      ...(this.options.args ?? []),
    );
    await this.launch(command, async () => {
      const connection = await this.adminConnection();
      connection.destroy();
      return true;
    });
  }

  private get socket(): string {
    return join(this.folder, 'socket');
  }

  private async bootstrap(): Promise<void> {
    await mkdir(join(this.folder, 'data'));
    const { isMariaDb, shareFolder } = this.program;
    const child = this.run(this.command(isMariaDb ? '--bootstrap' : '--initialize-insecure'), {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const gone = once(child, 'exit');
    if (isMariaDb) {
      const files = await readdir(shareFolder);
      const scripts = BOOTSTRAP.map((name) => files.find((file) => name.test(file))!);
      const texts = await Promise.all(scripts.map((name) => readFile(join(shareFolder, name), 'utf8')));
      child.stdin!.write(['create database mysql;', 'use mysql;', ...texts].join('\n'));
    }
    child.stdin!.end();
    const [code] = (await gone) as [number | null];
    if (code !== 0) throw new Error(`the server could not make its tables:\n${this.log}`);
  }

  private command(...args: readonly string[]): readonly string[] {
    const { command, baseFolder, shareFolder, isMariaDb } = this.program;
    return [
      ...command,
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
    ];
  }
}
