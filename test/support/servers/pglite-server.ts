import { Client } from 'pg';
import { freePort, LOOPBACK } from '../loopback.js';
import { serverFolder, ServerProcess } from './server-process.js';

const START = `
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
const db = await PGlite.create();
await new PGLiteSocketServer({ db, host: '${LOOPBACK}', port: Number(process.env.PORT), maxConnections: 100 }).start();
console.log('listening');
`;

/** PGlite behind a socket, in a process of its own. All connections share one session, and there are no notifications. */
export class PgliteServer extends ServerProcess {
  /** @param packages folder with the packages of PGlite */
  static async start(packages: string): Promise<PgliteServer> {
    const server = new PgliteServer('PGlite', await serverFolder('pglite'), await freePort());
    const command = [process.execPath, '--input-type=module', '--eval', START];
    const options = { cwd: packages, env: { PORT: String(server.port) } };
    await server.launch(command, () => Promise.resolve(server.log.includes('listening')), options);
    return server;
  }

  get uri(): string {
    return `postgres://postgres:secret@${this.host}:${this.port}/postgres`;
  }

  async adminConnection(): Promise<Client> {
    const client = new Client(this.uri);
    await client.connect();
    return client;
  }
}
