import { createConnection } from 'mysql2/promise';
import { lockTable, type LockPlace } from '../../lock-place.js';
import { onPath, PROBE_TIMEOUT_MS, startServer } from '../backends.js';
import { given } from '../given.js';
import { UsageError } from '../options.js';
import { openLocks, type StoreOfDemo } from './lock-desk.js';

/** Debian has it in a folder that is on the PATH of root only. */
const OFF_PATH = '/usr/sbin';

export const mysql: StoreOfDemo = {
  title: 'MySQL',
  remark: 'It has no read-write locks: a report excludes other reports, too.',
  async findServer(parts) {
    const server = await given({
      title: 'MySQL',
      variable: 'MYSQL_URL',
      example: 'mysql://user:password@localhost:3306/database',
      async probe(uri) {
        const connection = await createConnection({ uri, connectTimeout: PROBE_TIMEOUT_MS });
        await connection.end();
      },
    });
    if (server) return server;
    const program = onPath('mariadbd', OFF_PATH);
    if (program) return startServer(parts, 'MariaDB server', './parts/mysql-server.part.js', program);
    throw new UsageError(
      'There is no MySQL: set MYSQL_URL, or install mariadbd (Debian: apt-get install mariadb-server-core).',
    );
  },
  async open(place, resources, keyPrefix) {
    const locks = await openLocks(place, resources, keyPrefix);
    resources.defer(() => dropTable(place));
    return locks;
  },
};

const dropTable = async ({ url, namespace }: LockPlace): Promise<void> => {
  const connection = await createConnection(url);
  await connection.query(`DROP TABLE \`${lockTable(namespace)}\``);
  await connection.end();
};
