// Measures what fenceTransaction adds to a transaction of one read and one write, on PostgreSQL and on MariaDB:
//
//   node --import ./test/support/typescript/register-with-source.mjs test/fencing/cost.ts
import { fenceTransaction, migrateFencing } from 'nest-redis-lock/fencing';
import { MysqlServer } from '../support/servers/mysql-server.js';
import { PostgresServer } from '../support/servers/postgres-server.js';
import { mysqlSession, postgresSession, type Session } from './believers.js';
import { newKey, newLocks } from './leases.js';

const WARM_UP = 200;
const PAIRS = 2_000;

const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1]!;

/** Measures transactions with and without the fence in turn, so that both meet the same load of the machine. */
const measure = async (name: string, session: Session): Promise<void> => {
  const { rows, tx } = session;
  const lease = await newLocks().acquire(newKey());
  await migrateFencing(tx);
  await rows('CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)');
  await rows('INSERT INTO counter VALUES (1, 0)');
  const transaction = async (fenced: boolean): Promise<number> => {
    const start = performance.now();
    await session.begin('READ COMMITTED');
    if (fenced) await fenceTransaction(tx, lease);
    await rows('SELECT n FROM counter WHERE id = 1');
    await rows('UPDATE counter SET n = n + 1 WHERE id = 1');
    await rows('COMMIT');
    return performance.now() - start;
  };
  const took: Record<'with' | 'without', number[]> = { with: [], without: [] };
  for (let pair = 0; pair < WARM_UP + PAIRS; pair++) {
    const [without, fenced] = [await transaction(false), await transaction(true)];
    if (pair < WARM_UP) continue;
    took.without.push(without);
    took.with.push(fenced);
  }
  const [without, fenced] = [median(took.without), median(took.with)];
  console.log(
    `${name}: median ${without.toFixed(2)} ms without, ${fenced.toFixed(2)} ms with, ratio ${(fenced / without).toFixed(2)}`,
  );
  await session.close();
};

await using postgres = await PostgresServer.start();
await measure('PostgreSQL', await postgresSession(postgres.uri));
await using mysql = await MysqlServer.start();
await measure('MariaDB or MySQL', await mysqlSession(mysql.uri));
