import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { onPath } from '../../../.ci/process.mjs';
import { freePort } from '../loopback.js';
import { unprivileged } from './postgres-server.js';
import { serverFolder, ServerProcess, startOnFreePorts } from './server-process.js';

interface Upstream {
  readonly host: string;
  readonly port: number;
}

/** PgBouncer in transaction mode in front of a server of PostgreSQL. */
export class PgBouncer extends ServerProcess {
  private constructor(folder: string, port: number) {
    super('PgBouncer', folder, port);
  }

  /** @param connections maximum number of connections to the server */
  static start(server: Upstream, connections = 2): Promise<PgBouncer> {
    const make = async (): Promise<PgBouncer> =>
      new PgBouncer(await serverFolder('pgbouncer'), await freePort());
    return startOnFreePorts(make, (bouncer) => bouncer.begin(server, connections));
  }

  get uri(): string {
    return `postgres://app:secret@${this.host}:${this.port}/app`;
  }

  private async begin(server: Upstream, connections: number): Promise<void> {
    const { folder } = this;
    const settings = join(folder, 'settings.ini');
    await writeFile(join(folder, 'users.txt'), '"app" "secret"\n');
    await writeFile(
      settings,
      `[databases]
app = host=${server.host} port=${server.port} dbname=app
[pgbouncer]
listen_addr = ${this.host}
listen_port = ${this.port}
unix_socket_dir =
auth_type = plain
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = ${connections}
server_login_retry = 0.1
`,
    );
    await chmod(folder, 0o755);
    const program = onPath('pgbouncer') ?? '/usr/sbin/pgbouncer';
    await this.launch([program, '-q', settings], () => this.answers(), unprivileged());
  }

  private async answers(): Promise<boolean> {
    const client = new Client(this.uri);
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('SELECT 1');
      return true;
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
