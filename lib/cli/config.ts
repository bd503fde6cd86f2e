import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { LockServiceOptions } from '../index.js';
import type { MysqlStoreOptions } from '../entries/mysql.js';
import type { PostgresStoreOptions } from '../entries/postgres.js';
import type { RedisSource } from '../entries/redis.js';
import type { ZooKeeperStoreOptions } from '../entries/zookeeper.js';
import { passwordsIn } from './secrets.js';
import { UsageError } from './usage-error.js';

/** Options of the store. */
export type Address =
  /** Several sources are the servers of a quorum. */
  | { readonly store: 'redis'; readonly sources: readonly RedisSource[] }
  | { readonly store: 'postgres'; readonly options: PostgresStoreOptions }
  | { readonly store: 'mysql'; readonly options: MysqlStoreOptions }
  | { readonly store: 'zookeeper'; readonly options: ZooKeeperStoreOptions };

/** A configuration: the options of one store, by its name. */
export interface Config extends Pick<LockServiceOptions, 'keyPrefix'> {
  readonly address: Address;
  /** Texts that are never shown. */
  readonly secrets: readonly string[];
}

/** Where a configuration stands: a file, or the text of an environment variable. */
export interface ConfigSource {
  /** For messages. */
  readonly name: string;
  readonly text: string;
  /** Folder from which the names of its files are resolved. */
  readonly folder: string;
}

/** Option that an address alone stands for. */
const FROM_TEXT = { postgres: 'connectionString', mysql: 'uri', zookeeper: 'connect' } as const;

const NAMES = ['redis', 'postgres', 'mysql', 'zookeeper'] as const;

/** Names of options whose values are secrets. */
const SECRET = /pass|secret|digest|\.(key|pfx|ssl)\b/i;

const read = (path: string, what: string): string => {
  try {
    // Some editors begin a text with a byte order mark.
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new UsageError(`${what} cannot be read (${String((error as NodeJS.ErrnoException).code)}).`);
  }
};

/** @throws UsageError when the file cannot be read */
export const configFile = (path: string): ConfigSource => {
  const name = 'The file of --config';
  return { name, text: read(path, name), folder: dirname(resolve(path)) };
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Reads a configuration. In each place of the store's options, `{ "env": "NAME" }` stands for an environment variable,
 * and `{ "file": "PATH" }` for the text of a file.
 *
 * @throws UsageError that names the wrong option. No value is shown: it may be a secret
 */
export const readConfig = ({ name, text, folder }: ConfigSource, env: NodeJS.ProcessEnv): Config => {
  const secrets: string[] = [];
  const referred = (value: object, where: string): string | undefined => {
    const [[kind, of] = [], ...more] = Object.entries(value);
    if ((kind !== 'env' && kind !== 'file') || more.length > 0 || typeof of !== 'string') return undefined;
    const what = `${name}: ${where}: the ${kind === 'env' ? 'environment variable' : 'file'} ${of}`;
    const ofEnv = Object.hasOwn(env, of) ? env[of] : undefined;
    const found = kind === 'env' ? ofEnv : read(resolve(folder, of), what).replace(/\r?\n$/, '');
    if (!found) throw new UsageError(`${what} is ${found === undefined ? 'not set' : 'empty'}.`);
    secrets.push(found, ...passwordsIn([found]));
    return found;
  };
  const resolved = (value: unknown, where: string): unknown => {
    if (typeof value === 'string') secrets.push(...(SECRET.test(where) ? [value] : passwordsIn([value])));
    if (Array.isArray(value)) return value.map((one, i) => resolved(one, `${where}[${i}]`));
    if (!isObject(value)) return value;
    const members = (): unknown =>
      Object.fromEntries(Object.entries(value).map(([of, one]) => [of, resolved(one, `${where}.${of}`)]));
    return referred(value, where) ?? members();
  };
  const given = parsedJson(text);
  if (!isObject(given))
    throw new UsageError(`${name} is no object in JSON, such as { "redis": "redis://host:6379" }.`);
  const { keyPrefix, ...stores } = given;
  const unknown = Object.keys(stores).find((of) => !NAMES.some((known) => known === of));
  if (unknown !== undefined)
    throw new UsageError(`${name}: ${JSON.stringify(unknown)} is none of ${NAMES.join(', ')} and keyPrefix.`);
  const [store, ...others] = NAMES.filter((of) => of in stores);
  if (store === undefined || others.length > 0)
    throw new UsageError(`${name} must have one of ${NAMES.join(', ')}.`);
  if (keyPrefix !== undefined && typeof keyPrefix !== 'string')
    throw new UsageError(`${name}: keyPrefix is no text.`);
  const options = resolved(stores[store], store);
  if (typeof options === 'object' && Object.keys(options ?? {}).length === 0)
    throw new UsageError(`${name}: ${store} names no server.`);
  return { address: addressOf(store, options), keyPrefix, secrets };
};

const addressOf = (store: Address['store'], options: unknown): Address => {
  // Each store checks its options, and names the wrong one.
  if (store === 'redis')
    return { store, sources: (Array.isArray(options) ? options : [options]) as readonly RedisSource[] };
  return {
    store,
    options: typeof options === 'string' ? { [FROM_TEXT[store]]: options } : options,
  } as Address;
};

const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // The error would show part of the text.
    return undefined;
  }
};
