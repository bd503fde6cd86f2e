import { Redis, type RedisOptions } from 'ioredis';
import { KEEP_ALIVE_MS } from '../keep-alive.js';
import type { ServerAddress } from '../nat-map.js';
import { reconnectInMs } from '../reconnect.js';
import type { RedisLike } from '../redis-client.js';
import { givenOptions } from '../taken-options.js';

/** Default time-out of a request to a sentinel, in ms. ioredis has none: a hanging sentinel would block it. */
const SENTINEL_TIMEOUT_MS = 500;
/** Longest pause before a listener reconnects to its sentinel, in ms. That of ioredis is a minute. */
const MAX_PAUSE_MS = 2_000;

/** Option of ioredis for its retries after all sentinels have failed. */
export type WithSentinelRetry = Pick<RedisOptions, 'sentinelRetryStrategy'>;

/** Returns whether ioredis asks sentinels for the address of the master. */
export const usesSentinels = (client: RedisLike): boolean => {
  const { sentinels, Connector } = client.options as RedisOptions;
  return Array.isArray(sentinels) && !Connector;
};

/**
 * Sets up a client that asks sentinels. Each request to a sentinel gets a time-out, and the client asks all sentinels
 * again until one replies. The ready check is on, so that ioredis checks the role of the server that they name.
 */
export const setUpSentinels = (client: RedisLike): RedisLike => {
  if (!usesSentinels(client)) return client;
  const options = client.options as RedisOptions;
  options.enableReadyCheck = true;
  options.sentinelCommandTimeout = timeoutOf(options);
  options.sentinelRetryStrategy = persistent(options.sentinelRetryStrategy);
  return client;
};

/** Settings for listening to the sentinels of a client. */
export interface SentinelSettings {
  readonly name: string;
  readonly addresses: readonly ServerAddress[];
  readonly timeoutMs: number;
  readonly natMap: RedisOptions['natMap'] | null;
  /** Maximum number of sentinels to listen to. */
  readonly max: number;
  /** Whether to listen to sentinels that are not among the addresses. */
  readonly discovers: boolean;
  connect(at: ServerAddress): RedisLike;
}

export const sentinelSettingsOf = (client: RedisLike): SentinelSettings => {
  const options = client.options as RedisOptions;
  const { sentinels = [], name = '', natMap, updateSentinels, sentinelMaxConnections } = options;
  const timeoutMs = timeoutOf(options);
  const { sentinelReconnectStrategy } = givenOptions(client);
  const slowly = (attempt: number): number => Math.min(reconnectInMs(attempt) * attempt, MAX_PAUSE_MS);
  return {
    name,
    addresses: sentinels.map(({ host, port }) => ({
      host: host ?? '127.0.0.1',
      port: Number(port ?? 26_379),
    })),
    timeoutMs,
    natMap,
    max: sentinelMaxConnections ?? 10,
    discovers: updateSentinels !== false,
    connect: ({ host, port }) =>
      new Redis({
        host,
        port,
        family: options.family,
        username: options.sentinelUsername,
        password: options.sentinelPassword,
        tls: options.sentinelTLS,
        keepAlive: KEEP_ALIVE_MS,
        connectTimeout: timeoutMs,
        disconnectTimeout: 100,
        lazyConnect: true,
        enableReadyCheck: false,
        enableOfflineQueue: false,
        autoResubscribe: false,
        autoResendUnfulfilledCommands: false,
        maxRetriesPerRequest: 0,
        protocol: 2,
        disableClientInfo: true,
        retryStrategy: persistent(sentinelReconnectStrategy, slowly),
      }),
  };
};

const timeoutOf = ({ sentinelCommandTimeout }: RedisOptions): number =>
  Number(sentinelCommandTimeout) || SENTINEL_TIMEOUT_MS;

/** Returns the retry strategy, without its end: an app may ask for locks at any time. */
const persistent =
  (given: RedisOptions['sentinelRetryStrategy'] | null, otherwise = reconnectInMs) =>
  (attempt: number): number => {
    const ms = given?.(attempt);
    return typeof ms === 'number' ? ms : otherwise(attempt);
  };
