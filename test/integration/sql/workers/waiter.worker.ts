import { MysqlStore } from '../../../../lib/stores/mysql/mysql.store.js';
import { PostgresStore } from '../../../../lib/stores/postgres/postgres.store.js';
import { openLocksOn } from '../../../support/stores/open-locks-on.js';
import { workerChannel } from '../../../support/worker-channel.js';

/** Waits for a key until this process is killed: its arguments are the address of the server and the key. */
const [uri, key] = process.argv.slice(2) as [string, string];
const channel = workerChannel();
const isMysql = uri.startsWith('mysql:');
const { locks } = openLocksOn(
  isMysql ? new MysqlStore({ uri }) : new PostgresStore({ connectionString: uri }),
);
channel.send({ type: 'started' });
await locks.acquire(key, { waitMs: 60_000 });
