import { Redis, type RedisOptions } from 'ioredis';
import { isArray } from '../../../core/errors/describe.js';
import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import type { invalidOption } from '../../../core/settings/option-checks.js';

/** Options that the connections of the locks take over. Any other option may harm a lock. */
const TAKEN_OPTIONS = [
  'host', 'port', 'path', 'family', 'username', 'password', 'tls', 'db', 'sentinels', 'name', 'natMap',
  'sentinelUsername', 'sentinelPassword', 'sentinelTLS', 'enableTLSForSentinelMode', 'updateSentinels',
  'sentinelCommandTimeout', 'sentinelRetryStrategy', 'sentinelReconnectStrategy', 'sentinelMaxConnections',
  'failoverDetector', 'connectionName', 'disableClientInfo', 'clientInfoTag', 'Connector', 'keepAlive',
] as const; // prettier-ignore

type Options = Readonly<Record<string, unknown>>;

/** Returns the defaults of the ioredis that made the client; undefined when the client does not show them. */
const defaultsOf = (client: object): Options | undefined =>
  (client.constructor as { readonly defaultOptions?: Options } | undefined)?.defaultOptions;

/** Returns the options of a client that are not defaults of ioredis. */
export const givenOptions = (client: { readonly options: object }): RedisOptions => {
  const defaults = defaultsOf(client) ?? (new Redis({ lazyConnect: true }).options as Options);
  return withoutDefaults(client.options as Options, defaults);
};

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
  const effective: Options = { ...(new Redis({ lazyConnect: true }).options as Options), ...settings };
  const taken = new Set<string>([...TAKEN_OPTIONS, 'keyPrefix']);
  const names = Object.entries(given)
    .filter(([name, value]) => value !== undefined && !taken.has(name) && !isSame(value, effective[name]))
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

/** Rejects a host with a login, which logs and errors would show. */
export const checkHost = (host: unknown, name: string): void => {
  if (typeof host !== 'string' || !host.includes('@')) return;
  throw new LockConfigurationError(
    `${name} contains an @. A host is a name or an address; give the login as username and password.`,
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
  const { host, port, db, password, sentinels } = address;
  checkHost(host, 'redis.host');
  for (const one of isArray(sentinels) ? sentinels : []) {
    checkHost((one as { host?: unknown } | null)?.host, 'redis.sentinels');
  }
  if (password !== undefined && typeof password !== 'string') {
    // The value goes to a log, and may be the right password.
    throw new LockConfigurationError('redis.password must be a string, but is of another type.');
  }
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
