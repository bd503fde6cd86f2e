import { PostgresStore } from '../../../lib/stores/postgres/postgres.store.js';
import type { FullStore } from '../../support/stores/harness.js';
import { NOW } from '../../support/postgres/postgres-lab.js';
import { postgresHarness } from '../../support/stores/postgres.harness.js';
import { serverWorld } from './server.world.js';
import type { World } from './world.js';

export const postgresWorld = async (): Promise<World> => {
  const harness = await postgresHarness();
  const { server, admin } = harness;
  return serverWorld({
    harness,
    server,
    polled: true,
    open: (proxy, commandTimeoutMs) => {
      const connectionString = server.uri.replace(`:${server.port}/`, `:${proxy.port}/`);
      return new PostgresStore({ connectionString, commandTimeoutMs }) as unknown as FullStore;
    },
    age: async (ms) => void (await admin.query(`UPDATE nest_lock SET until = until - ${ms * 1_000}`)),
    leftMs: async ({ owner }) => {
      const { rows } = await admin.query<{ left_ms: string }>(
        `SELECT (until - ${NOW}) / 1000 AS left_ms FROM nest_lock WHERE owner = $1`,
        [owner],
      );
      return Math.max(0, Number(rows[0]?.left_ms ?? 0));
    },
    ask: () => admin.query('SELECT 1'),
  });
};
