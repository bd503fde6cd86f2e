import { PostgresStore } from '../../../lib/stores/postgres/postgres.store.js';
import type { FullStore } from '../../support/stores/harness.js';
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
    ask: () => admin.query('SELECT 1'),
  });
};
