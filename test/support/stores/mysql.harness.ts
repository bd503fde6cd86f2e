import type { Connection } from 'mysql2/promise';
import { MysqlStore } from '../../../lib/stores/mysql/mysql.store.js';
import { MysqlServer } from '../servers/mysql-server.js';
import { passRealTime, type FullStore, type StoreHarness } from './harness.js';

/** The kinds and objects that a store on a database has. */
export const openMysql = (uri = 'mysql://127.0.0.1:1/app'): FullStore =>
  new MysqlStore({ uri }) as unknown as FullStore;

export interface MysqlHarness extends StoreHarness {
  readonly server: MysqlServer;
  /** A plain connection of the administrator. */
  readonly admin: Connection;
}

/** The MySQL store on a real MariaDB server of its own, on the real clock. */
export async function mysqlHarness(): Promise<MysqlHarness> {
  const server = await MysqlServer.start();
  await server.migrate();
  const admin = await server.adminConnection();
  const count = async (from: string): Promise<number> => {
    const [rows] = await admin.query(`SELECT COUNT(*) AS n FROM ${from}`);
    return (rows as { n: number }[])[0]!.n;
  };
  return {
    server,
    admin,
    virtualTime: false,
    entriesExpire: true,
    address: server.uri,
    connect: () => Promise.resolve(openMysql(server.uri)),
    pass: passRealTime,
    leftovers: async () => ({
      holds: await count(
        "app.nest_lock WHERE owner <> '' AND until > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
      ),
      watches: 0,
      grantSubscriptions: 0,
    }),
    cleanup: async () => {
      admin.destroy();
      await server.stop();
    },
  };
}
