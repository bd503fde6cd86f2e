import { Redis, type RedisOptions } from 'ioredis';
import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import { refuse } from '../../../core/settings/option-checks.js';
import { shown } from '../../../core/errors/describe.js';
import { cleanError, secretsOf } from './clean-error.js';
import { KEEP_ALIVE_MS } from './keep-alive.js';
import { databaseOf, type ConnectionRole, type RedisLike } from './redis-client.js';
import { reconnectInMs } from './reconnect.js';
import { setUpSentinels } from './sentinels/sentinel-settings.js';
import { addressFrom, checkAddress, givenOptions, notTakenWarning } from './taken-options.js';

/**
 * Makes the store's clients, for set-ups that options cannot describe (rotating passwords, a custom connector).
 * `settings` are what the lock depends on: they must be passed on, after the caller's own. It is called once for each role;
 * `commands` connects when a lock is first asked for, `subscriber` when a caller first waits for one that is taken.
 */
export type CreateRedisClient = (role: ConnectionRole, settings: RedisOptions) => RedisLike;

/** One server: a URL, ioredis options, an existing ioredis client (only its address is used), or a factory of clients. */
export type ServerSource = string | RedisOptions | RedisLike | CreateRedisClient;

/** Commands are never queued, repeated or merged by the client: each would take a lock that this process does not know of. */
export const ownClientOptions = (commandTimeoutMs: number): RedisOptions => ({
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  enableAutoPipelining: false,
  // It asks INFO, which some servers lack. The connection asks for itself when the server executes commands.
  enableReadyCheck: false,
  // Behind sentinels, where it is on: ioredis would wait for as long as a server that loads its data estimates.
  maxLoadingRetryTime: 250,
  connectTimeout: commandTimeoutMs,
  // ioredis arms this timer when it disconnects without a socket too, and nothing then clears it.
  disconnectTimeout: 100,
  stringNumbers: false,
  noDelay: true,
  // All that is asked for works in RESP2, on every server and proxy.
  protocol: 2,
  keyPrefix: '',
  // The store listens to the sentinels itself: ioredis drops connections for other masters, too, and ends them politely.
  failoverDetector: false,
  retryStrategy: reconnectInMs,
});

export interface RedisEndpoint {
  /** The `keyPrefix` of what was handed over. */
  readonly keyPrefix: string;
  /** What to tell about options that have no effect. */
  readonly warning?: string | undefined;
  createClient(role: ConnectionRole): RedisLike;
}

const CLIENT_METHODS = ['call', 'connect', 'disconnect', 'subscribe', 'unsubscribe', 'on'] as const;

const isClient = (source: object): source is RedisLike =>
  CLIENT_METHODS.every((name) => typeof (source as RedisLike)[name] === 'function') &&
  typeof (source as RedisLike).options === 'object';

/** Other objects (a Promise, a URL, a Map, an array) have no address that ioredis would find, and mean localhost to it. */
const isOptions = (source: object): source is RedisOptions =>
  Object.prototype.toString.call(source) === '[object Object]';

/** A client of the package "redis" has no options that ioredis would find: it would mean localhost. */
const isNodeRedis = (source: object): boolean =>
  typeof (source as { sendCommand?: unknown }).sendCommand === 'function' &&
  typeof (source as { call?: unknown }).call !== 'function';

/** Refuses, by name, what looks like a client of Redis but cannot keep locks. */
const refuseOthers = (source: object, given: string): void => {
  if (isNodeRedis(source)) {
    throw new LockConfigurationError(
      `redis: ${given} is a client of node-redis (the package "redis"), and the locks need ioredis. Give the URL, ` +
        'ioredis options or an ioredis client; the locks open connections of their own in any case.',
    );
  }
  if ((source as { isCluster?: unknown }).isCluster === true) {
    throw new LockConfigurationError(
      `redis: ${given} is an ioredis Cluster, but a function has to give a client of one server. Hand the Cluster itself ` +
        'over, of which the addresses are taken: redis: cluster.',
    );
  }
};

/** Works out where to connect to, and how. Throws `LockConfigurationError` when that cannot work. */
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
 * A client for each role. Both are made before one of them connects: when the second cannot be made, nothing is left
 * open.
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
  // ioredis would take an empty one, which is what an unset variable often is, for localhost.
  if (typeof source === 'string' && source.trim() !== '') {
    return endpointOf(optionsOf(source), settings, refuseInUrl);
  }
  if (typeof source === 'object' && source !== null) refuseOthers(source, 'this');
  if (typeof source !== 'object' || source === null || !(isClient(source) || isOptions(source))) {
    const got = source === '' ? 'an empty string' : shown(source);
    throw new LockConfigurationError(
      `redis: expected a URL, ioredis options, an ioredis client or a function, got ${got}.`,
    );
  }
  if (!isClient(source)) return endpointOf(source, settings);
  // The database chosen by a later SELECT, which the options do not show.
  return endpointOf({ ...givenOptions(source), db: databaseOf(source) }, settings);
};

/** What a URL says. Other schemes, and whatever else it does not know, ioredis takes for the path of a socket. */
export const optionsOf = (url: string): RedisOptions => {
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(url)?.[1];
  if (scheme === undefined && !url.startsWith('/') && /[@/]/.test(url)) {
    // It may have a password, and is not shown.
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
  return given;
};

/** Like `refuse`, without the value: in a URL whose password is not encoded, a part of that is taken for the port. */
const refuseInUrl = (name: string, expected: string): never => {
  throw new LockConfigurationError(
    `redis: the URL gives a ${name} that is not ${expected.replace(/^an? /, 'a ')}. Where its user name or password has ` +
      'characters such as : / ? # @, write them as %3A %2F %3F %23 %40.',
  );
};

const endpointOf = (
  options: RedisOptions,
  settings: RedisOptions,
  refuseValue: typeof refuse = refuse,
): RedisEndpoint => {
  const address = addressFrom(options);
  checkAddress(address as Record<string, unknown>, refuseValue);
  const keyPrefix: unknown = options.keyPrefix ?? '';
  if (typeof keyPrefix !== 'string') return refuse('redis.keyPrefix', 'a string', keyPrefix);
  // Made once to see that it can be made: not connected, it leaves nothing behind.
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
    `redis: the function has to give an ioredis client (not a promise of one), but gave ${shown(client)}.`,
  );
};

/** What a client would do behind our back with a command whose connection is gone. */
const REPEATS = ['enableOfflineQueue', 'autoResendUnfulfilledCommands'] as const;

/** Refuses a client that was made without the settings: it would send commands on another connection than was meant. */
const asSet = (client: RedisLike): RedisLike => {
  const repeats = REPEATS.filter((name) => (client.options as Record<string, unknown>)[name] === true);
  if (repeats.length === 0) return client;
  throw new LockConfigurationError(
    `redis: the function gave a client with ${repeats.join(' and ')}, which sends a command again that may have been ` +
      'done, on another connection. Pass the settings on: (role, settings) => new Redis({ ...yours, ...settings }).',
  );
};

/**
 * A client that has chosen another database since it was made: from now on its options name that. Else ioredis would
 * choose it with a SELECT at the end of each reconnect, whose refusal the store could not catch.
 */
const inItsDatabase = (client: RedisLike): RedisLike => {
  (client.options as RedisOptions).db = databaseOf(client);
  return client;
};
