import { Redis, type RedisOptions } from 'ioredis';
import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import { invalidOption } from '../../../core/settings/option-checks.js';
import { nameOf } from '../../../core/settings/option-names.js';
import { formatValue } from '../../../core/util/describe.js';
import { cleanError, secretsOf } from './clean-error.js';
import { KEEP_ALIVE_MS } from './keep-alive.js';
import { databaseOf, type ConnectionRole, type RedisLike } from './redis-client.js';
import { reconnectInMs } from './reconnect.js';
import { setUpSentinels } from './sentinels/sentinel-settings.js';
import {
  addressFrom,
  checkAddress,
  checkFields,
  givenOptions,
  notTakenWarning,
  unknownField,
} from './taken-options.js';

/**
 * Creates a client of the store, for set-ups that options cannot describe (rotating passwords, a custom connector). The
 * store calls it once for each role. The client for `commands` connects at the first request for a lock, the client for
 * `subscriber` when a caller first waits for a taken lock.
 *
 * @param settings what the locks depend on. Pass them on, after your own options.
 *
 * @example
 * (role, settings) => new Redis({ ...yours, ...settings })
 */
export type CreateRedisClient = (role: ConnectionRole, settings: RedisOptions) => RedisLike;

/**
 * One server: a URL, ioredis options, an ioredis client (only its address and credentials are used), or a function that
 * creates clients.
 */
export type ServerSource = string | RedisOptions | RedisLike | CreateRedisClient;

/**
 * Returns the options that locks depend on. The client never queues, repeats or merges commands: each of these would
 * acquire a lock that this process does not know of.
 */
export const ownClientOptions = (commandTimeoutMs: number): RedisOptions => ({
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  enableAutoPipelining: false,
  // The ready check sends INFO, which some servers lack. The connection itself finds out when the server executes
  // commands.
  enableReadyCheck: false,
  // Behind sentinels the ready check is on: without this, ioredis waits as long as a server that loads its data
  // estimates.
  maxLoadingRetryTime: 250,
  connectTimeout: commandTimeoutMs,
  // ioredis also starts this timer when it disconnects without a socket, and then never clears it.
  disconnectTimeout: 100,
  stringNumbers: false,
  noDelay: true,
  // All requests work in RESP2, on every server and proxy.
  protocol: 2,
  keyPrefix: '',
  // The store listens to the sentinels itself. ioredis also drops connections for other masters, and ends them
  // gracefully.
  failoverDetector: false,
  retryStrategy: reconnectInMs,
});

export interface RedisEndpoint {
  /** `keyPrefix` of the given options or client. */
  readonly keyPrefix: string;
  /** Warning about options that have no effect. */
  readonly warning?: string | undefined;
  createClient(role: ConnectionRole): RedisLike;
}

const CLIENT_METHODS = ['call', 'connect', 'disconnect', 'subscribe', 'unsubscribe', 'on'] as const;

const isClient = (source: object): source is RedisLike =>
  CLIENT_METHODS.every((name) => typeof (source as RedisLike)[name] === 'function') &&
  typeof (source as RedisLike).options === 'object';

/** Returns whether an object is plain. For others (a Promise, a URL, a Map, an array) ioredis takes localhost. */
const isOptions = (source: object): source is RedisOptions =>
  Object.prototype.toString.call(source) === '[object Object]';

/** Returns whether an object is a client of the package "redis". ioredis finds no options in it and takes localhost. */
const isNodeRedis = (source: object): boolean =>
  typeof (source as { sendCommand?: unknown }).sendCommand === 'function' &&
  typeof (source as { call?: unknown }).call !== 'function';

/** Rejects objects that look like a Redis client but cannot keep locks, and names what they are. */
const refuseOthers = (source: object, given: string): void => {
  if (isNodeRedis(source)) {
    throw new LockConfigurationError(
      `redis: ${given} is a client of node-redis (the package "redis"), and the locks need ioredis: they open ` +
        'connections of their own in any case. Give the URL of the client, or { host, port, username, password, db, tls }: ' +
        'host and port stand in its socket, db is its database, and tls is {} if its socket has tls: true.',
    );
  }
  if ((source as { isCluster?: unknown }).isCluster === true) {
    throw new LockConfigurationError(
      `redis: ${given} is an ioredis Cluster, but a function has to give a client of one server. Hand the Cluster itself ` +
        'over, of which the addresses are taken: redis: cluster.',
    );
  }
};

/**
 * Determines where to connect to, and how.
 *
 * @throws {LockConfigurationError} when that cannot work
 */
export const resolveEndpoint = (source: ServerSource, commandTimeoutMs: number): RedisEndpoint => {
  try {
    return endpointFrom(source, ownClientOptions(commandTimeoutMs));
  } catch (error) {
    if (error instanceof LockConfigurationError) throw error;
    const cause = cleanError(error, typeof source === 'string' ? [source] : secretsOf(source));
    throw new LockConfigurationError(`redis cannot be used: ${cause.message}.`, { cause });
  }
};

/**
 * Creates a client for each role. Both are created before either of them connects: if the second one fails, no
 * connection stays open.
 */
export const createClients = (
  endpoint: RedisEndpoint,
): readonly [commands: RedisLike, subscriber: RedisLike] => {
  const [commands, subscriber] = [endpoint.createClient('commands'), endpoint.createClient('subscriber')];
  if (commands !== subscriber) return [setUpSentinels(asSet(commands)), setUpSentinels(asSet(subscriber))];
  throw new LockConfigurationError(
    'redis: the function gave one client for both roles, but a connection that listens can run no commands. Make a ' +
      'new one at each call: (role, settings) => new Redis({ ...yours, ...settings }).',
  );
};

const endpointFrom = (source: ServerSource, settings: RedisOptions): RedisEndpoint => {
  if (typeof source === 'function') {
    return { keyPrefix: '', createClient: (role) => clientFrom(source, role, settings) };
  }
  // An unset variable is often an empty string, which ioredis would take for localhost.
  if (typeof source === 'string' && source.trim() !== '') {
    return endpointOf(optionsOf(source), settings, refuseInUrl);
  }
  if (typeof source === 'object' && source !== null) refuseOthers(source, 'this');
  if (typeof source !== 'object' || source === null || !(isClient(source) || isOptions(source))) {
    const got = source === '' ? 'an empty string' : formatValue(source);
    throw new LockConfigurationError(
      `redis: expected a URL, ioredis options, an ioredis client or a function, got ${got}.`,
    );
  }
  if (!isClient(source)) {
    checkFields(source, 'redis');
    return endpointOf(source, settings);
  }
  // The options do not show a database that was selected later.
  return endpointOf({ ...givenOptions(source), db: databaseOf(source) }, settings);
};

/** Returns the options of a URL. ioredis takes anything that it does not know for the path of a socket. */
export const optionsOf = (url: string): RedisOptions => {
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(url)?.[1];
  if (scheme === undefined && !url.startsWith('/') && /[@/]/.test(url)) {
    // The text may contain a password, so it is not shown.
    throw new LockConfigurationError(
      'redis: a text is a URL (redis://host:port), host:port, or the path of a socket from / on, but this one is none of them.',
    );
  }
  if (scheme !== undefined && !/^rediss?$/i.test(scheme)) {
    throw new LockConfigurationError(
      `redis: a URL starts with redis:// or rediss://, but this one with ${scheme}://.`,
    );
  }
  const given = givenOptions(new Redis(url, { lazyConnect: true }));
  delete given.lazyConnect;
  const unknown = unknownField(given);
  if (unknown === undefined) return given;
  // After an unencoded ? of a password, its rest looks like options.
  const remedy = /\?.*@/.test(url) ? ENCODED : `Leave out ${nameOf(unknown)}.`;
  throw new LockConfigurationError(`redis: the URL has an option that ioredis does not have. ${remedy}`);
};

const ENCODED =
  'Where its user name or password has characters such as : / ? # @, write them as %3A %2F %3F %23 %40.';

/** Rejects like `refuse`, without the value: part of an unencoded password may have been taken for the port. */
const refuseInUrl = (name: string, expected: string): never => {
  throw new LockConfigurationError(
    `redis: the URL gives a ${name} that is not ${expected.replace(/^an? /, 'a ')}. ${ENCODED}`,
  );
};

const endpointOf = (
  options: RedisOptions,
  settings: RedisOptions,
  refuseValue: typeof invalidOption = invalidOption,
): RedisEndpoint => {
  const address = addressFrom(options);
  checkAddress(address as Record<string, unknown>, refuseValue);
  const keyPrefix: unknown = options.keyPrefix ?? '';
  if (typeof keyPrefix !== 'string') return invalidOption('redis.keyPrefix', 'a string', keyPrefix);
  // Create one client now, so that wrong options fail early. It does not connect and leaves nothing behind.
  const createClient = (): RedisLike => new Redis({ keepAlive: KEEP_ALIVE_MS, ...address, ...settings });
  createClient();
  return { keyPrefix, createClient, warning: notTakenWarning(options, settings) };
};

const clientFrom = (create: CreateRedisClient, role: ConnectionRole, settings: RedisOptions): RedisLike => {
  let client: unknown;
  try {
    client = create(role, { ...settings });
    if (typeof client === 'object' && client !== null) {
      refuseOthers(client, 'what the function gave');
      if (isClient(client)) return inItsDatabase(client);
    }
  } catch (error) {
    if (error instanceof LockConfigurationError) throw error;
    const cause = cleanError(error, []);
    throw new LockConfigurationError(`redis: the function that makes clients failed: ${cause.message}.`, {
      cause,
    });
  }
  throw new LockConfigurationError(
    `redis: the function has to give an ioredis client (not a promise of one), but gave ${formatValue(client)}.`,
  );
};

/** Options with which a client would repeat a command after its connection has ended. */
const REPEATS = ['enableOfflineQueue', 'autoResendUnfulfilledCommands'] as const;

/** Rejects a client that was created without the settings: it would repeat commands on another connection. */
const asSet = (client: RedisLike): RedisLike => {
  const repeats = REPEATS.filter((name) => (client.options as Record<string, unknown>)[name] === true);
  if (repeats.length === 0) return client;
  throw new LockConfigurationError(
    `redis: the function gave a client with ${repeats.join(' and ')}, which sends a command again that may have been ` +
      'done, on another connection. Pass the settings on: (role, settings) => new Redis({ ...yours, ...settings }).',
  );
};

/**
 * Writes the database that a client has selected since it was created into its options. Otherwise ioredis would select
 * it at the end of each reconnect, and the store could not catch the refusal of that SELECT.
 */
const inItsDatabase = (client: RedisLike): RedisLike => {
  (client.options as RedisOptions).db = databaseOf(client);
  return client;
};
