import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Client } from 'pg';
import { freePort, LOOPBACK } from '../loopback.js';
import { guardProcess } from '../process-guard.js';

const START = `
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
const db = await PGlite.create();
await new PGLiteSocketServer({ db, host: '${LOOPBACK}', port: Number(process.env.PORT), maxConnections: 100 }).start();
console.log('listening');
`;

/** PGlite behind a socket, in a process of its own. All connections share one session, and there are no notifications. */
export class PgliteServer {
  readonly host = LOOPBACK;

  private constructor(
    readonly port: number,
    private readonly child: ChildProcess,
  ) {}

  /** @param folder has the packages of PGlite */
  static async start(folder: string): Promise<PgliteServer> {
    const port = await freePort();
    const child = spawn(process.execPath, ['--input-type=module', '--eval', START], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, PORT: String(port) },
    });
    guardProcess(child);
    const ended = once(child, 'exit').then(() => {
      throw new Error('PGlite has ended');
    });
    await Promise.race([once(child.stdout, 'data'), ended]);
    ended.catch(() => undefined);
    return new PgliteServer(port, child);
  }

  get uri(): string {
    return `postgres://postgres:secret@${this.host}:${this.port}/postgres`;
  }

  async adminConnection(): Promise<Client> {
    const client = new Client(this.uri);
    await client.connect();
    return client;
  }

  async stop(): Promise<void> {
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }
}
