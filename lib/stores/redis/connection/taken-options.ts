import { Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import { isArray } from '../../../core/util/describe.js';
import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import { checkLogin, type invalidOption } from '../../../core/settings/option-checks.js';
import { nameOf, remedy, type Names } from '../../../core/settings/option-names.js';

/** Options that the connections of the locks take over. Any other option may harm a lock. */
const TAKEN_OPTIONS = [
  'host', 'port', 'path', 'family', 'username', 'password', 'tls', 'db', 'sentinels', 'name', 'natMap',
  'sentinelUsername', 'sentinelPassword', 'sentinelTLS', 'enableTLSForSentinelMode', 'updateSentinels',
  'sentinelCommandTimeout', 'sentinelRetryStrategy', 'sentinelReconnectStrategy', 'sentinelMaxConnections',
  'failoverDetector', 'connectionName', 'disableClientInfo', 'clientInfoTag', 'Connector', 'keepAlive',
] as const; // prettier-ignore

/** Options of ioredis that the connections of the locks do not take over. */
const OTHER_OPTIONS: Names<Omit<RedisOptions & ClusterOptions, (typeof TAKEN_OPTIONS)[number] | 'redisOptions'>> = {
  ...{ keyPrefix: true, dnsLookup: true, lazyConnect: true, readOnly: true, role: true, monitor: true, scripts: true },
  ...{ retryStrategy: true, reconnectOnError: true, maxRetriesPerRequest: true, maxLoadingRetryTime: true },
  ...{ connectTimeout: true, disconnectTimeout: true, commandTimeout: true, socketTimeout: true, noDelay: true },
  ...{ blockingTimeout: true, blockingTimeoutGrace: true, autoResubscribe: true, enableReadyCheck: true },
  ...{ autoResendUnfulfilledCommands: true, enableOfflineQueue: true, offlineQueue: true, commandQueue: true },
  ...{ enableAutoPipelining: true, autoPipeliningIgnoredCommands: true, stringNumbers: true, protocol: true },
  ...{ replyMapping: true, himportFieldsets: true, preferredSlaves: true, showFriendlyErrorStack: true },
  ...{ clusterRetryStrategy: true, clusterNodeRetryStrategy: true, scaleReads: true, maxRedirections: true },
  ...{ retryDelayOnMoved: true, retryDelayOnFailover: true, retryDelayOnClusterDown: true, retryDelayOnTryAgain: true },
  ...{ slotsRefreshTimeout: true, slotsRefreshInterval: true, useSRVRecords: true, resolveSrv: true, shardedSubscribers: true },
}; // prettier-ignore

const EFFECTIVE_OPTIONS: readonly string[] = [...TAKEN_OPTIONS, 'keyPrefix'];
const SENTINEL_FIELDS = ['host', 'port', 'family'];

const URL_ITSELF = "the URL itself in place of the object: 'redis://host:port'";
const CLUSTER = 'cluster: [some of its servers]';

/** What to write instead of fields of other clients. */
const INSTEAD: Readonly<Record<string, string>> = {
  ...{ url: URL_ITSELF, uri: URL_ITSELF, connectionString: URL_ITSELF },
  socket: 'its host and port, or its path, beside the other options, and tls: {} if it has tls: true',
  redisOptions: 'its options beside the other ones',
  ...{ nodes: CLUSTER, rootNodes: CLUSTER, startupNodes: CLUSTER, database: 'db', ssl: 'tls' },
};

type Options = Readonly<Record<string, unknown>>;

/** Returns the first field that ioredis does not have. A field that is undefined has no effect anywhere. */
export const unknownField = (
  options: object,
  known = (name: string): boolean => EFFECTIVE_OPTIONS.includes(name) || Object.hasOwn(OTHER_OPTIONS, name),
): string | undefined =>
  Object.entries(options).find(([name, value]) => value !== undefined && !known(name))?.[0];

/**
 * Rejects an address with a field that ioredis does not have. ioredis would ignore the field, and might connect to
 * localhost.
 *
 * @param where name of the address, for the message: `redis`
 */
export const checkFields = (options: object, where: string): void => {
  const name = unknownField(options);
  if (name !== undefined) {
    const instead = Object.hasOwn(INSTEAD, name)
      ? `. Write ${INSTEAD[name]}.`
      : remedy(name, EFFECTIVE_OPTIONS);
    throw new LockConfigurationError(`${where}.${nameOf(name)} is no option of ioredis${instead}`);
  }
  const sentinels = (options as { sentinels?: unknown }).sentinels ?? [];
  if (!isArray(sentinels))
    throw new LockConfigurationError(`${where}.sentinels must be a list of { host, port }.`);
  for (const [i, sentinel] of sentinels.entries()) {
    if (typeof sentinel !== 'object' || sentinel === null) {
      // A text may be a URL with a password, so it is not shown.
      throw new LockConfigurationError(`${where}.sentinels[${i}] must be { host, port }.`);
    }
    const field = unknownField(sentinel, (one) => SENTINEL_FIELDS.includes(one));
    if (field === undefined) continue;
    throw new LockConfigurationError(
      `${where}.sentinels[${i}].${nameOf(field)} is no option of ioredis. A sentinel has ${SENTINEL_FIELDS.join(', ')}; its login ` +
        'is sentinelUsername and sentinelPassword, beside sentinels.',
    );
  }
};

/** Defaults of ioredis. The constructor of a client does not show them: ioredis mixes an emitter into its prototype. */
const defaults = (): Options => ({ ...new Redis({ lazyConnect: true }).options, lazyConnect: false });

/** Returns the options of a client that are not defaults of ioredis. A client that connects late may do so. */
export const givenOptions = ({ options }: { readonly options: object }): RedisOptions =>
  withoutDefaults({ ...options, lazyConnect: false }, defaults());

/** Returns the options that differ from these defaults. Functions of another copy of ioredis are compared as text. */
export const withoutDefaults = (options: Options, defaults: Options): RedisOptions =>
  Object.fromEntries(Object.entries(options).filter(([name, value]) => !isSame(value, defaults[name])));

const isSame = (value: unknown, other: unknown): boolean =>
  value === other ||
  (typeof value === 'function' && typeof other === 'function' && String(value) === String(other)) ||
  (isArray(value) && isArray(other) && value.length + other.length === 0);

/** Returns the options that the connections of the locks take over. */
export const addressFrom = (options: RedisOptions): RedisOptions => {
  const picked: Record<string, unknown> = {};
  for (const name of TAKEN_OPTIONS) {
    const value = (options as Options)[name];
    if (value !== undefined && value !== null) picked[name] = value;
  }
  return picked;
};

/**
 * Returns the warning that names the options without an effect on the locks; undefined when there are none.
 *
 * @param settings options with which each client is created: a given option with the same value has its effect
 */
export const notTakenWarning = (given: RedisOptions, settings: RedisOptions): string | undefined => {
  const effective: Options = { ...defaults(), lazyConnect: true, ...settings };
  const names = Object.entries(given)
    .filter(
      ([name, value]) =>
        value !== undefined && !EFFECTIVE_OPTIONS.includes(name) && !isSame(value, effective[name]),
    )
    .map(([name]) => name);
  if (names.length === 0) return undefined;
  return (
    `These options of redis have no effect on the locks, which open connections with settings of their own: ` +
    `${names.join(', ')}. The options that are taken over are listed in docs/guide/configuration.md.`
  );
};

export const isWhole = (value: unknown, most: number): boolean => {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return Number.isInteger(number) && (number as number) >= 0 && (number as number) <= most;
};

/** A URL as a path would be shown, with its password. */
const checkSocket = (path: unknown): void => {
  if (typeof path !== 'string' || !/^[a-z][a-z\d+.-]*:\/\/|^(?!\/[^/]).*@/is.test(path)) return;
  throw new LockConfigurationError(
    `redis.path must be the path of a socket, but looks like a URL. Write ${URL_ITSELF}.`,
  );
};

export const checkAddress = (address: Options, refuseValue: typeof invalidOption): void => {
  for (const name of ['host', 'path', 'username', 'name', 'connectionName']) {
    const value = address[name];
    if (value !== undefined && typeof value !== 'string') refuseValue(`redis.${name}`, 'a string', value);
  }
  for (const name of ['sentinelRetryStrategy', 'sentinelReconnectStrategy']) {
    const value = address[name];
    if (value !== undefined && typeof value !== 'function') refuseValue(`redis.${name}`, 'a function', value);
  }
  const { host, port, path, db, password, sentinels } = address;
  checkLogin('redis.host', host);
  for (const one of isArray(sentinels) ? sentinels : []) {
    checkLogin('redis.sentinels', (one as { host?: unknown } | null)?.host);
  }
  if (password !== undefined && typeof password !== 'string') {
    // The value goes to a log, and may be the right password.
    throw new LockConfigurationError('redis.password must be a string, but is of another type.');
  }
  checkSocket(path);
  // An unset variable is often an empty string, which ioredis would take for localhost.
  if (host === '') refuseValue('redis.host', 'a string that is not empty', host);
  if (port !== undefined && !isWhole(port, 65_535))
    refuseValue('redis.port', 'a number from 0 to 65535', port);
  if (db !== undefined && !isWhole(db, 2 ** 31 - 1)) refuseValue('redis.db', 'the number of a database', db);
  for (const name of ['keepAlive', 'sentinelCommandTimeout']) {
    const value = address[name];
    if (value !== undefined && !isWhole(value, 2 ** 31 - 1)) {
      refuseValue(`redis.${name}`, 'a whole number of milliseconds', value);
    }
  }
};
