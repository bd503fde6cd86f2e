import { until } from '../async.js';
import { RedisServer, type RedisServerOptions } from './redis-server.js';

/**
 * Copies begin at once, and what is lost of a connection is noticed soon. What was copied is not kept in a file, from which a
 * server that is killed and started again would have the data of that time.
 */
export const REPLICATION: readonly string[] = [
  'repl-diskless-sync yes',
  'repl-diskless-sync-delay 0',
  'repl-ping-replica-period 1',
  'rdb-del-sync-files yes',
];

/** What INFO replication says of one thing. */
export const replicationOf = async (server: RedisServer, field: string): Promise<string | undefined> =>
  new RegExp(`^${field}:(.*?)\r?$`, 'm').exec(await server.text('INFO', 'replication'))?.[1];

/** Resolves once the replica has all that the master had. */
export const inStep = (replica: RedisServer): Promise<unknown> =>
  until(async () => (await replicationOf(replica, 'master_link_status')) === 'up', {
    timeoutMs: 30_000,
    what: `the replica on port ${replica.port} is connected to its master`,
  });

/** A server that copies another one, which counts on it from now on. */
export const startReplica = async (
  master: RedisServer,
  options: RedisServerOptions = {},
): Promise<RedisServer> => {
  const config = [...REPLICATION, `replicaof ${master.host} ${master.port}`, ...(options.config ?? [])];
  return startReplicaWith(master, { ...options, config });
};

/** The same, of one whose configuration says already whom it copies. */
export const startReplicaWith = async (
  master: RedisServer,
  options: RedisServerOptions,
): Promise<RedisServer> => {
  const replica = await RedisServer.start(options);
  await inStep(replica);
  const client = master.adminClient();
  try {
    // A replica that has been sent all counts from its first word on, which comes up to a second later.
    await until(
      async () => {
        await client.set('probe', '');
        await client.del('probe');
        return client.wait(1, 50);
      },
      { what: 'the replica has acknowledged a write' },
    );
  } finally {
    client.disconnect();
  }
  return replica;
};
