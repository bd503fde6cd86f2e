import { fenceTransaction, migrateFencing } from 'nest-redis-lock/fencing';
import type { Lease } from 'nest-redis-lock';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { PostgresServer } from '../support/servers/postgres-server.js';
import { newKey, useLab } from '../support/redis/lab.js';
import { openLocks } from '../support/redis/open-locks.js';
import { REPLICATION, startReplica } from '../support/servers/redis-replicas.js';
import { TestWorker } from '../support/worker.js';
import type { BelieverSetup, FromBeliever, ToBeliever } from './workers/believer.worker.js';

const lab = useLab({ config: REPLICATION });

describe('two holders of one lock, and one database', () => {
  let server: PostgresServer;
  const clients: Client[] = [];

  const connect = async (): Promise<Client> => {
    const client = new Client(server.uri);
    clients.push(client);
    await client.connect();
    return client;
  };
  const valueOf = async (client: Client): Promise<unknown> =>
    (await client.query<{ value: string }>('SELECT value FROM stock')).rows[0]?.value;

  beforeAll(async () => {
    server = await PostgresServer.start();
    const client = await connect();
    await migrateFencing(client);
    await client.query('CREATE TABLE stock (value text)');
  });
  beforeEach(async () => {
    await clients[0]!.query('DELETE FROM stock');
    await clients[0]!.query("INSERT INTO stock VALUES ('before')");
  });
  // A transaction that a failed test has left open would block the next test.
  afterEach(() => Promise.all(clients.map((client) => client.query('ROLLBACK'))));
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await server?.stop();
  });

  /** Begins a transaction, fences it, and adds a name to the value. The caller commits. */
  const append = async (client: Client, lease: Lease, name: string): Promise<void> => {
    await client.query('BEGIN');
    await fenceTransaction(client, lease);
    const value = await valueOf(client);
    await client.query('UPDATE stock SET value = $1', [`${String(value)}, ${name}`]);
  };

  /** Promotes a replica that never got the lock of the first holder. Both hold it then, each on its server. */
  const afterPromotion = async (work: (earlier: Lease, later: Lease) => Promise<void>): Promise<void> => {
    await using replica = await startReplica(lab.server);
    const key = newKey();
    await replica.cli('REPLICAOF', 'NO', 'ONE');
    const earlier = await lab.open().locks.acquire(key);
    await using promoted = openLocks(replica.url);
    const later = await promoted.locks.acquire(key);
    expect([earlier.lost, later.lost], 'both believe').toEqual([false, false]);
    await work(earlier, later);
  };

  it('the first holder is refused once the second one has written', async () => {
    await afterPromotion(async (earlier, later) => {
      const [a, b] = [await connect(), await connect()];
      await append(b, later, 'second');
      await b.query('COMMIT');
      await expect(append(a, earlier, 'first')).rejects.toMatchObject({ reason: 'fenced', key: earlier.key });
      await a.query('ROLLBACK');
      expect(await valueOf(a)).toBe('before, second');
    });
  });

  it('the second holder waits for the commit of the first one, and builds on it', async () => {
    await afterPromotion(async (earlier, later) => {
      const [a, b] = [await connect(), await connect()];
      await append(a, earlier, 'first');
      const second = append(b, later, 'second');
      await until(
        async () =>
          (await server.admin("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length > 0,
        { what: 'the second holder waits for the row of the fence' },
      );
      await a.query('COMMIT');
      await second;
      await b.query('COMMIT');
      expect(await valueOf(a)).toBe('before, first, second');
    });
  });

  it('a process that was stopped past its lease is refused when it comes back', async () => {
    const key = newKey();
    const setup: BelieverSetup = { redis: lab.server.url, database: server.uri, key };
    await using worker = TestWorker.start<ToBeliever, FromBeliever>(
      new URL('./workers/believer.worker.ts', import.meta.url),
      { args: [JSON.stringify(setup)] },
    );
    const { token } = await worker.next('holding');
    await worker.kill('SIGSTOP');
    worker.send({ type: 'write', value: 'stale' });
    const lease = await lab.open({ waitMs: 20_000 }).locks.acquire(key);
    expect(lease.fencingToken).toBeGreaterThan(token);
    const client = await connect();
    await append(client, lease, 'next');
    await client.query('COMMIT');
    await worker.kill('SIGCONT');
    expect(await worker.next('refused')).toEqual({ type: 'refused', reason: 'fenced' });
    expect(await valueOf(client)).toBe('before, next');
  });
});
