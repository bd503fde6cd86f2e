import { Client } from 'pg';
import { EMBEDDED, lockTable, type LockPlace } from '../../lock-place.js';
import { GIVEN_DATABASE, startServer } from '../backends.js';
import { given } from '../given.js';
import { openLocks, type StoreOfDemo } from './lock-desk.js';

export const postgres: StoreOfDemo = {
  title: 'PostgreSQL',
  remark: 'It has no read-write locks: a report excludes other reports, too.',
  async findServer(parts) {
    const server = await given(GIVEN_DATABASE);
    if (server) return server;
    const embedded = await startServer(parts, 'embedded PostgreSQL', './parts/embedded-postgres.part.js');
    return { ...embedded, url: `${embedded.url}?application_name=${EMBEDDED}` };
  },
  async open(place, resources, keyPrefix) {
    const locks = await openLocks(place, resources, keyPrefix);
    resources.defer(() => dropTable(place));
    return locks;
  },
};

const dropTable = async ({ url, namespace }: LockPlace): Promise<void> => {
  const client = new Client(url);
  await client.connect();
  await client.query(`DROP TABLE "${lockTable(namespace)}"`);
  await client.end();
};
