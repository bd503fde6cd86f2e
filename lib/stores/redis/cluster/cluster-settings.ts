import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { isArray, formatValue } from '../../../core/util/describe.js';
import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import { checkLogin, invalidOption } from '../../../core/settings/option-checks.js';
import { cleanError, secretsOf } from '../connection/clean-error.js';
import type { RedisLike } from '../connection/redis-client.js';
import { seenFromHere } from '../connection/nat-map.js';
import { KEEP_ALIVE_MS } from '../connection/keep-alive.js';
import { optionsOf, ownClientOptions } from '../connection/redis-settings.js';
import {
  addressFrom,
  checkAddress,
  checkFields,
  isWhole,
  notTakenWarning,
  withoutDefaults,
} from '../connection/taken-options.js';
import { connectorWith, type DnsLookup } from './lookup-connector.js';
import type { NodeAddress } from './slots.js';

/**
 * Options of a Redis Cluster: some of its servers, and ioredis options for each server.
 *
 * @example
 * { cluster: ['redis-1:6379', 'redis-2:6379'], password: 'secret' }
 */
export interface RedisClusterOptions extends RedisOptions {
  readonly cluster: readonly (
    string | { readonly host?: string | undefined; readonly port?: number | undefined }
  )[];
  /** Addresses at which this process reaches servers that announce other ones, as `natMap` of an ioredis `Cluster`. */
  readonly natMap?: RedisOptions['natMap'];
}

/** An ioredis `Cluster`, whose addresses and options are used. A structural type, like {@link RedisLike}. */
export interface ClusterLike {
  readonly isCluster: boolean;
  readonly options: object;
}

/** Addresses of a cluster, and how to connect to its servers. */
export interface ClusterEndpoint {
  readonly keyPrefix: string;
  /** Warning about options that have no effect. */
  readonly warning?: string | undefined;
  /** Servers that are asked first for the others. */
  readonly seeds: readonly NodeAddress[];
  connect(address: NodeAddress): RedisLike;
  /** The endpoint for checks, whose clients keep the process alive also while its app starts. Default: this one. */
  readonly forChecks?: ClusterEndpoint;
}

export const isClusterClient = (source: unknown): source is ClusterLike =>
  typeof source === 'object' && source !== null && (source as { isCluster?: unknown }).isCluster === true;

/** Returns whether a source has the option `cluster`. A client of one server has a method of that name. */
const isClusterOptions = (source: unknown): source is RedisClusterOptions => {
  if (typeof source !== 'object' || source === null) return false;
  const { cluster } = source as { cluster?: unknown };
  return cluster !== undefined && typeof cluster !== 'function';
};

/**
 * Returns the endpoint of a cluster; undefined when the source is not a cluster.
 *
 * @throws {LockConfigurationError} when the settings cannot work
 */
export const resolveCluster = (source: unknown, commandTimeoutMs: number): ClusterEndpoint | undefined => {
  try {
    return clusterFrom(source, commandTimeoutMs);
  } catch (error) {
    if (error instanceof LockConfigurationError) throw error;
    const { cluster = [] } = source as { cluster?: unknown };
    const texts = (isArray(cluster) ? cluster : []).filter((node) => typeof node === 'string');
    const cause = cleanError(error, [...texts, ...secretsOf(source)]);
    throw new LockConfigurationError(`redis.cluster cannot be used: ${cause.message}.`, { cause });
  }
};

const clusterFrom = (source: unknown, commandTimeoutMs: number): ClusterEndpoint | undefined => {
  if (isClusterClient(source)) {
    const { startupNodes, options } = source as ClusterLike & { startupNodes?: unknown };
    const { redisOptions, ...given } = withoutDefaults(
      options as Record<string, unknown>,
      new Cluster([{}], { lazyConnect: true }).options as Record<string, unknown>,
    ) as { redisOptions?: RedisOptions };
    const shared = { ...given, ...redisOptions };
    return endpointOf(startupNodes, 'redis (the startup nodes of the Cluster)', shared, commandTimeoutMs);
  }
  if (!isClusterOptions(source)) return undefined;
  // With an ioredis Cluster, options of a server are in `redisOptions`: accept them here as well.
  const { cluster, redisOptions, ...options } = source as RedisClusterOptions & {
    redisOptions?: RedisOptions;
  };
  checkFields(options, 'redis');
  checkFields({ ...redisOptions }, 'redis.redisOptions');
  for (const [i, node] of (isArray(cluster) ? cluster : []).entries()) {
    if (typeof node === 'object' && node !== null) checkFields(node, `redis.cluster[${i}]`);
  }
  return endpointOf(cluster, 'redis.cluster', { ...redisOptions, ...options }, commandTimeoutMs);
};

const endpointOf = (
  nodes: unknown,
  where: string,
  options: RedisOptions,
  commandTimeoutMs: number,
): ClusterEndpoint => {
  if (isArray(nodes) && nodes.length === 0) {
    throw new LockConfigurationError(`${where} is empty: name at least one server of the cluster.`);
  }
  if (!isArray(nodes)) {
    return invalidOption(where, 'a list of servers such as [{ host: "redis-1", port: 6379 }]', nodes);
  }
  const all = nodes.map((node, i) => nodeFrom(node, `${where}[${i}]`));
  const address: RedisOptions = {};
  for (const { options: own } of all) Object.assign(address, own);
  Object.assign(address, addressFrom(options));
  for (const name of ['db', 'path', 'sentinels', 'name'] as const) refuseInCluster(address, name);
  for (const name of ['host', 'port', 'path', 'db'] as const) delete address[name];
  checkAddress({ ...address }, invalidOption);
  const { dnsLookup, ...others } = options as RedisOptions & { dnsLookup?: unknown };
  if (dnsLookup !== undefined && typeof dnsLookup !== 'function') {
    return invalidOption('redis.dnsLookup', 'a function', dnsLookup);
  }
  const keyPrefix: unknown = options.keyPrefix ?? '';
  if (typeof keyPrefix !== 'string') return invalidOption('redis.keyPrefix', 'a string', keyPrefix);
  const own = ownClientOptions(commandTimeoutMs);
  const byLookup = dnsLookup && { Connector: connectorWith(dnsLookup as DnsLookup) };
  const settings = { keepAlive: KEEP_ALIVE_MS, ...byLookup, ...address, ...own };
  const connect = (at: NodeAddress): RedisLike =>
    new Redis({ ...settings, ...seenFromHere(at, options.natMap) });
  const seeds = all.map(({ at }) => at);
  // Create one client now, so that wrong options fail early.
  connect(seeds[0]!);
  return { keyPrefix, seeds, connect, warning: notTakenWarning(others, own) };
};

const refuseInCluster = (address: RedisOptions, name: 'db' | 'path' | 'sentinels' | 'name'): void => {
  const value = address[name];
  if (value === undefined || (name === 'db' && Number(value) === 0)) return;
  throw new LockConfigurationError(
    name === 'db'
      ? `redis.db is ${formatValue(value)}, but a Redis Cluster has only database 0. Leave it out, and keep apart by keyPrefix.`
      : `redis.${name} does not go with a Redis Cluster: its servers have addresses of their own.`,
  );
};

interface GivenNode {
  readonly at: NodeAddress;
  /** Options that a URL gives beside the address: user, password, TLS, database. */
  readonly options?: RedisOptions;
}

const nodeFrom = (node: unknown, where: string): GivenNode => {
  if (typeof node === 'string' && node.includes('://')) {
    const { host = 'localhost', port = 6379, ...options } = addressFrom(optionsOf(node));
    return { at: { host, port }, options };
  }
  if (typeof node === 'string' && /^[^:\s@/]+:\d+$/.test(node)) {
    const [host, port] = node.split(':');
    return nodeFrom({ host, port: Number(port) }, where);
  }
  if (isWhole(node, 65_535)) return { at: { host: '127.0.0.1', port: Number(node) } };
  const {
    host = '127.0.0.1',
    port = 6379,
    ...options
  } = (typeof node === 'object' && node !== null ? node : {}) as Record<string, unknown>;
  const isUsable = typeof node === 'object' && node !== null && typeof host === 'string' && host !== '';
  if (!isUsable || !isWhole(port, 65_535)) {
    // A text may be a URL in another form, with a password, so it is not shown.
    if (typeof node === 'string') {
      throw new LockConfigurationError(
        `${where} must be a URL (redis://host:port), "host:port" or { host, port }, but is another text.`,
      );
    }
    return invalidOption(where, 'a URL, "host:port" or { host, port } with a port up to 65535', node);
  }
  checkLogin(where, host);
  return { at: { host, port: Number(port) }, options: addressFrom(options) };
};
