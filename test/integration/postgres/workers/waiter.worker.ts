import { PostgresStore } from '../../../../lib/stores/postgres/postgres.store.js';
import { openSqlLocks } from '../../../support/sql/sql-lab.js';
import { workerChannel } from '../../../support/worker-channel.js';

/** Waits for a key until this process is killed: its arguments are the address of the server and the key. */
const [connectionString, key] = process.argv.slice(2) as [string, string];
workerChannel();
const { locks } = openSqlLocks(new PostgresStore({ connectionString }));
await locks.acquire(key, { waitMs: 60_000 });
