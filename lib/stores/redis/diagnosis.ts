import { RedisFailure, isReplyError, unwrapped } from './connection/redis-failure.js';
import type { RedisConnection } from './connection/redis-connection.js';
import { Script } from './connection/script.js';

/**
 * Returns the warning about a server that may delete locks when its memory is full; undefined when it does not. A
 * server or proxy that does not name its policy gives no warning.
 *
 * @param memory reply of INFO memory
 */
export const evictionWarning = (memory: string): string | undefined => {
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
  if (!policy || !/^(allkeys|volatile)-/.test(policy)) return undefined;
  return (
    `Redis has maxmemory-policy "${policy}": when its memory is full, it deletes locks that are held, and others get ` +
    `them at the same time. Set it to "noeviction", or keep the locks on a Redis of their own.`
  );
};

/**
 * Returns the warning about a server that is a replica, or a single server of a cluster; undefined otherwise, and when
 * the server does not tell.
 *
 * @param replication reply of INFO replication
 * @param cluster reply of INFO cluster
 */
export const partWarning = (
  replication: string,
  cluster: string,
  { isInCluster }: { readonly isInCluster: boolean },
): string | undefined => {
  if (!isInCluster && /^cluster_enabled:1/m.test(cluster)) {
    return (
      'Redis is one server of a Redis Cluster, and redis names it as if it were alone: locks whose slot another server has ' +
      'cannot be taken. Give redis: { cluster: [its address] }.'
    );
  }
  if (!/^role:slave/m.test(replication)) return undefined;
  const [host, port] = ['host', 'port'].map(
    (what) => new RegExp(`^master_${what}:(\\S+)`, 'm').exec(replication)?.[1],
  );
  return `Redis is a replica of ${host}:${port}: no lock can be taken there. Give the address of its master, or those of its sentinels.`;
};

export const IS_SENTINEL =
  'The server that redis names is a Sentinel, which keeps no locks. ' +
  "Give redis: { sentinels: [{ host, port }], name: 'mymaster' }, or the address of the master.";

/** Script that changes nothing. */
const NOTHING = new Script('return 1');

/** Resolves with the warning about a server that runs no scripts for this user; undefined when it runs them. */
export const scriptsWarning = async (connection: RedisConnection): Promise<string | undefined> => {
  await connection.load(NOTHING);
  const refusal = await refusalOf(connection.run(NOTHING, [], [], () => undefined));
  if (refusal === undefined) return undefined;
  return (
    `Redis runs no scripts (${refusal}), and every lock is taken by one: no lock can be acquired here. Allow the user ` +
    `+eval and +evalsha, or use a Redis whose vendor has not taken these commands away.`
  );
};

/** Resolves with the text of the server's refusal. Throws other failures: they say nothing about scripts. */
const refusalOf = async (request: Promise<unknown>): Promise<string | undefined> => {
  try {
    await request;
    return undefined;
  } catch (failure) {
    if (failure instanceof RedisFailure && isReplyError(failure.cause) && !failure.passing)
      return unwrapped(failure.cause.message);
    throw failure;
  }
};

/** Warnings about one server. */
interface WarningsOfOne {
  /** Name that distinguishes the server; undefined when there is only one. */
  readonly name: string | undefined;
  readonly warnings: readonly string[];
}

/** Returns each warning once. A warning that not all servers give begins with the names of its servers. */
export const warningsOfAll = (replies: readonly WarningsOfOne[]): readonly string[] => {
  const about = new Map<string, (string | undefined)[]>();
  for (const { name, warnings } of replies) {
    for (const warning of warnings) about.set(warning, [...(about.get(warning) ?? []), name]);
  }
  return [...about].map(([warning, names]) =>
    names.length === replies.length ? warning : `${names.join(', ')}: ${warning}`,
  );
};
