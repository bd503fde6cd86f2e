import { fenceTransaction } from 'nest-redis-lock/fencing';
import { LockLostError } from 'nest-redis-lock';
import { Client } from 'pg';
import { openLocks } from '../../support/redis/open-locks.js';
import { workerChannel } from '../../support/worker-channel.js';

/** The worker's only argument, as JSON. */
export interface BelieverSetup {
  readonly redis: string;
  readonly database: string;
  readonly key: string;
}

export type ToBeliever = { readonly type: 'write'; readonly value: string };

export type FromBeliever =
  | { readonly type: 'holding'; readonly token: number }
  | { readonly type: 'wrote' }
  | { readonly type: 'refused'; readonly reason: string };

const { redis, database, key } = JSON.parse(process.argv[2]!) as BelieverSetup;
const { locks, close } = openLocks(redis, { watchdogMs: 1_000, commandTimeoutMs: 900 });
const client = new Client(database);
await client.connect();

const channel = workerChannel<ToBeliever, FromBeliever>(async () => {
  await client.end();
  await close();
});

const lease = await locks.acquire(key);

channel.on('write', async ({ value }) => {
  await client.query('BEGIN');
  try {
    await fenceTransaction(client, lease);
    await client.query('UPDATE stock SET value = $1', [value]);
    await client.query('COMMIT');
    channel.send({ type: 'wrote' });
  } catch (error) {
    await client.query('ROLLBACK');
    channel.send({ type: 'refused', reason: error instanceof LockLostError ? error.reason : String(error) });
  }
});

channel.send({ type: 'holding', token: lease.fencingToken });
