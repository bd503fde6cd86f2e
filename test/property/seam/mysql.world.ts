import type { RowDataPacket } from 'mysql2/promise';
import { MysqlStore } from '../../../lib/stores/mysql/mysql.store.js';
import type { FullStore } from '../../support/stores/harness.js';
import { NOW } from '../../support/mysql/mysql-lab.js';
import { mysqlHarness } from '../../support/stores/mysql.harness.js';
import { serverWorld } from './server.world.js';
import type { World } from './world.js';

export const mysqlWorld = async (): Promise<World> => {
  const harness = await mysqlHarness();
  const { server, admin } = harness;
  return serverWorld({
    harness,
    server,
    polled: true,
    open: (proxy, commandTimeoutMs) => {
      const uri = server.uri.replace(`:${server.port}/`, `:${proxy.port}/`);
      return new MysqlStore({ uri, commandTimeoutMs }) as unknown as FullStore;
    },
    age: async (ms) => void (await admin.query('UPDATE app.nest_lock SET until = until - ?', [ms * 1_000])),
    leftMs: async ({ owner }) => {
      const [[row]] = await admin.query<RowDataPacket[]>(
        `SELECT (until - ${NOW}) / 1000 AS leftMs FROM app.nest_lock WHERE owner = ?`,
        [owner],
      );
      return Math.max(0, Number(row?.['leftMs'] ?? 0));
    },
    ask: () => admin.query('SELECT 1'),
  });
};
