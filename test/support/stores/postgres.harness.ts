import type { Client } from 'pg';
import { PostgresStore } from '../../../lib/stores/postgres/postgres.store.js';
import { PgliteServer } from '../servers/pglite-server.js';
import { PostgresServer } from '../servers/postgres-server.js';
import { passRealTime, type FullStore, type StoreHarness } from './harness.js';

/** Folder with the packages of PGlite, to test on that. Its connections share a session, as behind a pooler. */
const PGLITE = process.env['TEST_PGLITE'];

/** The kinds and objects that a store on a database has. */
export const openPostgres = (connectionString = 'postgres://127.0.0.1:1/app'): FullStore =>
  new PostgresStore({ connectionString, pooled: PGLITE !== undefined }) as unknown as FullStore;

export interface PostgresHarness extends StoreHarness {
  readonly server: Pick<PostgresServer, 'host' | 'port' | 'uri'>;
  /** A plain connection of the administrator to the database `app`. */
  readonly admin: Client;
}

/** The PostgreSQL store on a real server of its own or on PGlite, on the real clock. */
export async function postgresHarness(): Promise<PostgresHarness> {
  const server = await (PGLITE === undefined ? PostgresServer.start() : PgliteServer.start(PGLITE));
  const store = new PostgresStore({ connectionString: server.uri, pooled: PGLITE !== undefined });
  await store.migrate();
  await store.close();
  const admin = await server.adminConnection('app');
  const count = async (from: string): Promise<number> => {
    const { rows } = await admin.query<{ n: string }>(`SELECT count(*) AS n FROM ${from}`);
    return Number(rows[0]!.n);
  };
  return {
    server,
    admin,
    virtualTime: false,
    entriesExpire: true,
    address: server.uri,
    connect: () => Promise.resolve(openPostgres(server.uri)),
    pass: passRealTime,
    leftovers: async () => ({
      holds: await count(
        "nest_lock WHERE owner <> '' AND until > extract(epoch FROM clock_timestamp()) * 1000000",
      ),
      watches: 0,
      grantSubscriptions: 0,
    }),
    cleanup: async () => {
      await admin.end();
      await server.stop();
    },
  };
}
