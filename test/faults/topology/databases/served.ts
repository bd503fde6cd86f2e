import { until } from '../../../support/async.js';
import type { Database } from '../database.js';

/** A server that has crashed first cleans up, and may end only then. */
const TIMEOUT_MS = 20_000;

/** Resolves when the database serves. Starts it again when it has ended. */
export const served = async (database: Database, name: string): Promise<void> => {
  const serves = async (): Promise<boolean> => {
    if (!database.isRunning) await database.startAgain().catch(() => undefined);
    return (await database.query('SELECT 1').catch(() => [])).length > 0;
  };
  await until(serves, { what: `${name} serves`, timeoutMs: TIMEOUT_MS });
};
