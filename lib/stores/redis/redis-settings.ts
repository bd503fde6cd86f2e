import { Redis, type RedisOptions } from 'ioredis';
import { LockConfigurationError } from '../../core/lock.errors.js';
import { refuse } from '../../core/option-checks.js';
import { shown, textOf } from '../../core/shown.js';
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

const CLIENT_METHODS = ['call', 'connect', 'disconnect', 'subscribe', 'unsubscribe', 'on'] as const;

const isClient = (source: object): source is RedisLike =>
  CLIENT_METHODS.every((name) => typeof (source as RedisLike)[name] === 'function') &&
  typeof (source as RedisLike).options === 'object';

/** Other objects (a Promise, a URL, a Map, an array) have no address that ioredis would find, and mean localhost to it. */
const isOptions = (source: object): source is RedisOptions =>
  Object.prototype.toString.call(source) === '[object Object]';

/** Works out where to connect to, and how. Throws `LockConfigurationError` when that cannot work. */
export const resolveEndpoint = (source: RedisSource, commandTimeoutMs: number): RedisEndpoint => {
  try {
    return endpointFrom(source, lockSettings(commandTimeoutMs));
  } catch (error) {
    if (error instanceof LockConfigurationError) throw error;
    // The error of a URL has the URL in it, and that may have a password in it.
    const cause = typeof source === 'string' ? {} : { cause: error };
    throw new LockConfigurationError(`redis cannot be used: ${textOf(error)}.`, cause);
  }
};

const endpointFrom = (source: RedisSource, settings: RedisOptions): RedisEndpoint => {
  if (typeof source === 'function') {
    return { keyPrefix: '', cluster: false, createClient: (role) => clientFrom(source, role, settings) };
  }
  // ioredis would take an empty one, which is what an unset variable often is, for localhost.
  if (typeof source === 'string' && source.trim() !== '') return endpointOf(optionsOf(source), settings);
  if (typeof source !== 'object' || source === null || !(isClient(source) || isOptions(source))) {
    const got = source === '' ? 'an empty string' : shown(source);
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

/** What a URL says. Other schemes ioredis takes for the path of a socket. */
const optionsOf = (url: string): RedisOptions => {
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(url)?.[1];
  if (scheme !== undefined && !/^rediss?$/i.test(scheme)) {
    throw new LockConfigurationError(
      `redis: a URL starts with redis:// or rediss://, but this one with ${scheme}://.`,
    );
  }
  return { ...new Redis(url, { lazyConnect: true }).options };
};

const isWhole = (value: unknown, most: number): boolean => {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return Number.isInteger(number) && (number as number) >= 0 && (number as number) <= most;
};

const checkAddress = (address: Record<string, unknown>): void => {
  for (const name of ['host', 'path', 'username', 'name', 'connectionName']) {
    const value = address[name];
    if (value !== undefined && typeof value !== 'string') refuse(`redis.${name}`, 'a string', value);
  }
  const { host, port, db, password } = address;
  if (password !== undefined && typeof password !== 'string') {
    // It may be the right one all the same, and this goes to a log.
    throw new LockConfigurationError('redis.password must be a string, but is of another type.');
  }
  // What an unset variable often is; ioredis would take it for localhost.
  if (host === '') refuse('redis.host', 'a string that is not empty', host);
  if (port !== undefined && !isWhole(port, 65_535)) refuse('redis.port', 'a number from 0 to 65535', port);
  if (db !== undefined && !isWhole(db, 2 ** 31 - 1)) refuse('redis.db', 'the number of a database', db);
};

const endpointOf = (options: RedisOptions, settings: RedisOptions): RedisEndpoint => {
  const address = pickAddress(options);
  checkAddress(address as Record<string, unknown>);
  const keyPrefix: unknown = options.keyPrefix ?? '';
  if (typeof keyPrefix !== 'string') return refuse('redis.keyPrefix', 'a string', keyPrefix);
  // Made once to see that it can be made: not connected, it leaves nothing behind.
  const createClient = (): RedisLike => new Redis({ ...address, ...settings });
  createClient();
  return { keyPrefix, cluster: false, createClient };
};

const clientFrom = (create: CreateRedisClient, role: ConnectionRole, settings: RedisOptions): RedisLike => {
  let client: unknown;
  try {
    client = create(role, { ...settings });
    if (typeof client === 'object' && client !== null && isClient(client)) return client;
  } catch (error) {
    throw new LockConfigurationError(`redis: the function that makes clients failed: ${textOf(error)}.`, {
      cause: error,
    });
  }
  throw new LockConfigurationError(
    `redis: the function has to give an ioredis client (not a promise of one), but gave ${shown(client)}.`,
  );
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
