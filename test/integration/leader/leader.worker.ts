import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createLockService } from 'nest-redis-lock';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { MysqlStore } from '../../../lib/stores/mysql/mysql.store.js';
import { PostgresStore } from '../../../lib/stores/postgres/postgres.store.js';
import { QuorumStore } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { ZooKeeperStore } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { workerChannel } from '../../support/worker-channel.js';

/** A process that is a candidate. Its argument is this as JSON. */
export interface LeaderWorkerSetup {
  readonly store: 'redis' | 'quorum' | 'postgres' | 'mysql' | 'zookeeper';
  /** Of a quorum: the addresses of its servers, with a space between two. */
  readonly address: string;
  readonly key: string;
  readonly watchdogMs: number;
  /** Folder for the file in which it notes when it believes to lead. */
  readonly folder: string;
}

export type ToLeader = { readonly type: 'stop' };
export type FromLeader =
  | { readonly type: 'contends' }
  | { readonly type: 'leads'; readonly token: number; readonly at: number }
  | { readonly type: 'leads no longer'; readonly reason: string };

/** How often the process looks whether it believes to lead, in ms. */
const LOOK_EVERY_MS = 2;
/** Longest time of a command, in ms: less than a third of the lease. */
const commandTimeoutMs = 900;

const setup = JSON.parse(process.argv[2]!) as LeaderWorkerSetup;
const { address, key, watchdogMs } = setup;

const STORES: Readonly<Record<LeaderWorkerSetup['store'], () => LockStore>> = {
  redis: () => new RedisStore({ redis: address, commandTimeoutMs }),
  quorum: () => {
    const nodes = address.split(' ').map((redis) => new RedisStore({ redis, commandTimeoutMs }));
    // The servers of the test have just been started.
    return new QuorumStore({ nodes, delayAfterRestartMs: 0 });
  },
  postgres: () => new PostgresStore({ connectionString: address, commandTimeoutMs }),
  mysql: () => new MysqlStore({ uri: address, commandTimeoutMs }),
  zookeeper: () => new ZooKeeperStore({ connect: address, commandTimeoutMs }),
};

/** Time in ms on a clock that all processes of the machine share. */
const sharedNow = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

const locks = await createLockService({ store: STORES[setup.store](), watchdogMs, shutdownGraceMs: 5_000 });
const channel = workerChannel<ToLeader, FromLeader>(() => locks.close());
let token = 0;
locks.on('leader-lost', ({ reason }) => channel.send({ type: 'leads no longer', reason }));

const candidate = locks.lead(key, async ({ signal, fencingToken }) => {
  token = fencingToken;
  channel.send({ type: 'leads', token, at: sharedNow() });
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
});

// Each line: the token, and the times before and after the process read that it leads.
const file = openSync(join(setup.folder, `${process.pid}.beliefs`), 'a');
const looking = setInterval(() => {
  const before = sharedNow();
  const { isLeader } = candidate;
  const after = sharedNow();
  if (isLeader) writeSync(file, `${token} ${before} ${after}\n`);
}, LOOK_EVERY_MS);

const end = async (): Promise<void> => {
  await locks.close();
  clearInterval(looking);
  process.disconnect();
};
process.once('SIGTERM', () => void end());
channel.on('stop', async () => candidate.stop());
channel.send({ type: 'contends' });
