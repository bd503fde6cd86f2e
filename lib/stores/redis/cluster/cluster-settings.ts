import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { isArray, shown } from '../../../core/errors/describe.js';
import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import { refuse } from '../../../core/settings/option-checks.js';
import { cleanError, secretsOf } from '../connection/clean-error.js';
import type { RedisLike } from '../connection/redis-client.js';
import { seenFromHere } from '../connection/nat-map.js';
import { KEEP_ALIVE_MS } from '../connection/keep-alive.js';
import { optionsOf, ownClientOptions } from '../connection/redis-settings.js';
import {
  addressFrom,
  checkAddress,
  isWhole,
  notTakenWarning,
  withoutDefaults,
} from '../connection/taken-options.js';
import { connectorWith, type DnsLookup } from './lookup-connector.js';
import type { NodeAddress } from './slots.js';

/** Options of ioredis for each server of a Redis Cluster, and some of its servers: the others are found out from these. */
export interface RedisClusterOptions extends RedisOptions {
  readonly cluster: readonly (string | { readonly host?: string; readonly port?: number })[];
  /** Where servers are for us that call themselves otherwise; as that of an ioredis `Cluster`. */
  readonly natMap?: RedisOptions['natMap'];
}

/** An ioredis `Cluster`, of which the addresses are taken. Structural, as {@link RedisLike} is. */
export interface ClusterLike {
  readonly isCluster: boolean;
  readonly options: object;
}

/** Where a cluster is, and how its servers are connected to. */
export interface ClusterEndpoint {
  readonly keyPrefix: string;
  /** What to tell about options that have no effect. */
  readonly warning?: string | undefined;
  /** The servers that are asked first for the others. */
  readonly seeds: readonly NodeAddress[];
  /** Connects to one of its servers. */
  connect(address: NodeAddress): RedisLike;
}

export const isClusterClient = (source: unknown): source is ClusterLike =>
  typeof source === 'object' && source !== null && (source as { isCluster?: unknown }).isCluster === true;

/** A client of one server has a method of that name. */
const isClusterOptions = (source: unknown): source is RedisClusterOptions => {
  if (typeof source !== 'object' || source === null) return false;
  const { cluster } = source as { cluster?: unknown };
  return cluster !== undefined && typeof cluster !== 'function';
};

/** Where the cluster is; undefined for what is none. Throws `LockConfigurationError` when it cannot work. */
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
  // Who is used to an ioredis Cluster writes them there.
  const { cluster, redisOptions, ...options } = source as RedisClusterOptions & {
    redisOptions?: RedisOptions;
  };
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
    return refuse(where, 'a list of servers such as [{ host: "redis-1", port: 6379 }]', nodes);
  }
  const all = nodes.map((node, i) => nodeFrom(node, `${where}[${i}]`));
  const address: RedisOptions = {};
  for (const { options: own } of all) Object.assign(address, own);
  Object.assign(address, addressFrom(options));
  for (const name of ['db', 'path', 'sentinels', 'name'] as const) refuseInCluster(address, name);
  for (const name of ['host', 'port', 'path', 'db'] as const) delete address[name];
  checkAddress({ ...address }, refuse);
  const { dnsLookup, ...others } = options as RedisOptions & { dnsLookup?: unknown };
  if (dnsLookup !== undefined && typeof dnsLookup !== 'function') {
    return refuse('redis.dnsLookup', 'a function', dnsLookup);
  }
  const keyPrefix: unknown = options.keyPrefix ?? '';
  if (typeof keyPrefix !== 'string') return refuse('redis.keyPrefix', 'a string', keyPrefix);
  const own = ownClientOptions(commandTimeoutMs);
  const byLookup = dnsLookup && { Connector: connectorWith(dnsLookup as DnsLookup) };
  const settings = { keepAlive: KEEP_ALIVE_MS, ...byLookup, ...address, ...own };
  const connect = (at: NodeAddress): RedisLike =>
    new Redis({ ...settings, ...seenFromHere(at, options.natMap) });
  const seeds = all.map(({ at }) => at);
  // Made once to see that it can be made.
  connect(seeds[0]!);
  return { keyPrefix, seeds, connect, warning: notTakenWarning(others, own) };
};

const refuseInCluster = (address: RedisOptions, name: 'db' | 'path' | 'sentinels' | 'name'): void => {
  const value = address[name];
  if (value === undefined || (name === 'db' && Number(value) === 0)) return;
  throw new LockConfigurationError(
    name === 'db'
      ? `redis.db is ${shown(value)}, but a Redis Cluster has only database 0. Leave it out, and keep apart by keyPrefix.`
      : `redis.${name} does not go with a Redis Cluster: its servers have addresses of their own.`,
  );
};

interface GivenNode {
  readonly at: NodeAddress;
  /** What is said of it beside the address: user, password, TLS, database. */
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
    // A text may be a URL that was meant otherwise, with a password.
    if (typeof node === 'string') {
      throw new LockConfigurationError(
        `${where} must be a URL (redis://host:port), "host:port" or { host, port }, but is another text.`,
      );
    }
    return refuse(where, 'a URL, "host:port" or { host, port } with a port up to 65535', node);
  }
  return { at: { host, port: Number(port) }, options: addressFrom(options) };
};
