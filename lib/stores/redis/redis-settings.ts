import { Redis, type RedisOptions } from 'ioredis';
import { LockConfigurationError } from '../../core/lock.errors.js';
import type { ConnectionRole, RedisLike } from './redis-client.js';

/**
 * Makes the store's clients, for set-ups that options cannot describe (rotating passwords, a custom connector).
 * `settings` are what the lock depends on: they must be passed on, after the caller's own.
 */
export type CreateRedisClient = (role: ConnectionRole, settings: RedisOptions) => RedisLike;

/** A URL, ioredis options, an existing ioredis client (only its address is used), or a factory of clients. */
export type RedisSource = string | RedisOptions | RedisLike | CreateRedisClient;

/** What is taken over from options or from a client that was handed over. Anything else may harm a lock. */
const ADDRESS_OPTIONS = [
  'host', 'port', 'path', 'family', 'username', 'password', 'tls', 'db', 'sentinels', 'name', 'natMap',
  'sentinelUsername', 'sentinelPassword', 'sentinelTLS', 'enableTLSForSentinelMode', 'updateSentinels',
  'dnsLookup', 'connectionName', 'Connector',
] as const; // prettier-ignore

/** Commands are never queued, repeated or merged behind our back: each would be a lock nobody knows of. */
const lockSettings = (commandTimeoutMs: number): RedisOptions => ({
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  enableAutoPipelining: false,
  enableReadyCheck: true,
  // How soon a server that loads its data is asked again; ioredis would wait for as long as that one estimates.
  maxLoadingRetryTime: 250,
  connectTimeout: commandTimeoutMs,
  // ioredis arms this timer when it disconnects without a socket too, and nothing then clears it.
  disconnectTimeout: 100,
  stringNumbers: false,
  noDelay: true,
  // All that is asked for works in RESP2, on every server and proxy.
  protocol: 2,
  keyPrefix: '',
  // Spread out, so that not all processes come back in the same instant.
  retryStrategy: (attempt: number) =>
    Math.min(25 * 2 ** Math.min(attempt, 5), 500) * (0.5 + Math.random() / 2),
});

export interface RedisEndpoint {
  /** The `keyPrefix` of what was handed over. */
  readonly keyPrefix: string;
  readonly cluster: boolean;
  createClient(role: ConnectionRole): RedisLike;
}

const isClient = (source: object): source is RedisLike => typeof (source as RedisLike).call === 'function';

/** Works out where to connect to, and how. */
export const resolveEndpoint = (source: RedisSource, commandTimeoutMs: number): RedisEndpoint => {
  const settings = lockSettings(commandTimeoutMs);
  if (typeof source === 'function') {
    return { keyPrefix: '', cluster: false, createClient: (role) => source(role, { ...settings }) };
  }
  // ioredis would take an empty one, which is what an unset variable often is, for localhost.
  if (typeof source === 'string' && source !== '') {
    return endpointOf({ ...new Redis(source, { lazyConnect: true }).options }, settings);
  }
  if (typeof source !== 'object' || source === null) {
    const got = source === '' ? 'an empty string' : source === null ? 'null' : typeof source;
    throw new LockConfigurationError(
      `redis: expected a URL, ioredis options, an ioredis client or a function, got ${got}.`,
    );
  }
  if (!isClient(source)) return endpointOf(source, settings);
  if ((source as { isCluster?: boolean }).isCluster) return clusterEndpointOf(source, settings);
  const { condition } = source as { condition?: { select?: number } | null };
  const options = source.options as RedisOptions;
  // The database chosen by a later SELECT, which the options do not show.
  return endpointOf({ ...options, db: condition?.select ?? options.db }, settings);
};

const pickAddress = (options: RedisOptions): RedisOptions => {
  const picked: Record<string, unknown> = {};
  for (const name of ADDRESS_OPTIONS) {
    const value = (options as Record<string, unknown>)[name];
    if (value !== undefined && value !== null) picked[name] = value;
  }
  return picked;
};

const endpointOf = (options: RedisOptions, settings: RedisOptions): RedisEndpoint => {
  const address = pickAddress(options);
  return {
    keyPrefix: options.keyPrefix ?? '',
    cluster: false,
    createClient: () => new Redis({ ...address, ...settings }),
  };
};

interface ClusterInternals {
  readonly startupNodes?: unknown;
  readonly options: { readonly redisOptions?: RedisOptions; readonly keyPrefix?: string } & Record<
    string,
    unknown
  >;
  readonly constructor: new (nodes: unknown, options: unknown) => RedisLike;
}

const clusterEndpointOf = (cluster: RedisLike, settings: RedisOptions): RedisEndpoint => {
  const { options, startupNodes, constructor: Cluster } = cluster as unknown as ClusterInternals;
  const { natMap, dnsLookup, useSRVRecords, resolveSrv, redisOptions } = options;
  return {
    keyPrefix: options.keyPrefix ?? redisOptions?.keyPrefix ?? '',
    cluster: true,
    createClient: () =>
      new Cluster(startupNodes, {
        ...(natMap ? { natMap } : {}),
        ...(dnsLookup ? { dnsLookup } : {}),
        ...(resolveSrv ? { resolveSrv } : {}),
        useSRVRecords,
        lazyConnect: true,
        enableOfflineQueue: false,
        // Each of these would repeat a command that may have been done.
        retryDelayOnFailover: 0,
        scaleReads: 'master',
        redisOptions: { ...pickAddress(redisOptions ?? {}), ...settings },
      }),
  };
};
