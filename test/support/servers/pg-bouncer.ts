import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { onPath } from '../../../.ci/process.mjs';
import { until } from '../async.js';
import { freePort, LOOPBACK } from '../loopback.js';
import { guardFolder, guardProcess } from '../process-guard.js';
import { SCRATCH } from '../scratch.js';
import { unprivileged, type PostgresServer } from './postgres-server.js';

/** PgBouncer in transaction mode in front of a server, with two connections to it. */
export class PgBouncer implements AsyncDisposable {
  private constructor(
    private readonly folder: string,
    readonly port: number,
    private readonly child: ChildProcess,
  ) {}

  static async start(server: PostgresServer): Promise<PgBouncer> {
    const program = onPath('pgbouncer') ?? '/usr/sbin/pgbouncer';
    const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-pgbouncer-'));
    guardFolder(folder);
    const port = await freePort();
    const settings = join(folder, 'settings.ini');
    await writeFile(join(folder, 'users.txt'), '"app" "secret"\n');
    await writeFile(
      settings,
      `[databases]
app = host=${server.host} port=${server.port} dbname=app
[pgbouncer]
listen_addr = ${LOOPBACK}
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = 2
`,
    );
    await chmod(folder, 0o755);
    const child = spawn(program, ['-q', settings], { stdio: 'ignore', ...unprivileged() });
    guardProcess(child);
    const bouncer = new PgBouncer(folder, port, child);
    await until(() => bouncer.answers(), { timeoutMs: 20_000, what: 'PgBouncer answers' });
    return bouncer;
  }

  get uri(): string {
    return `postgres://app:secret@${LOOPBACK}:${this.port}/app`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = once(this.child, 'exit');
      this.child.kill('SIGKILL');
      await ended;
    }
    await rm(this.folder, { recursive: true, force: true });
  }

  private async answers(): Promise<boolean> {
    const client = new Client(this.uri);
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('SELECT 1');
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
