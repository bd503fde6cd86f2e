import { Redis, type RedisOptions } from 'ioredis';
import { KEEP_ALIVE_MS } from '../keep-alive.js';
import type { ServerAddress } from '../nat-map.js';
import { reconnectInMs } from '../reconnect.js';
import type { RedisLike } from '../redis-client.js';
import { givenOptions } from '../taken-options.js';

/** Time-out of a request to a sentinel, in ms. ioredis has none: a sentinel that hangs would be waited for without end. */
const SENTINEL_TIMEOUT_MS = 500;
/** Longest pause before a listener connects to its sentinel again, in ms. ioredis waits for a minute. */
const MAX_PAUSE_MS = 2_000;

/** Where ioredis reads how to ask the sentinels again. */
export type WithSentinelRetry = Pick<RedisOptions, 'sentinelRetryStrategy'>;

/** Whether ioredis asks sentinels where the master is. */
export const asksSentinels = (client: RedisLike): boolean => {
  const { sentinels, Connector } = client.options as RedisOptions;
  return Array.isArray(sentinels) && !Connector;
};

/**
 * Gives a client a time-out for each request to a sentinel, lets it ask all of them again until one replies, and has it check
 * the role of the server that they name (its ready check).
 */
export const setUpSentinels = (client: RedisLike): RedisLike => {
  if (!asksSentinels(client)) return client;
  const options = client.options as RedisOptions;
  options.enableReadyCheck = true;
  options.sentinelCommandTimeout = timeoutOf(options);
  options.sentinelRetryStrategy = persistent(options.sentinelRetryStrategy);
  return client;
};

/** How the sentinels of a client are listened to. */
export interface SentinelSettings {
  /** Name of the master. */
  readonly name: string;
  readonly addresses: readonly ServerAddress[];
  readonly timeoutMs: number;
  readonly natMap: RedisOptions['natMap'] | null;
  /** Number of sentinels that are listened to at most. */
  readonly max: number;
  /** Whether sentinels that are not among the addresses are listened to. */
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

/** The strategy, without its end: locks are asked for again at any time. */
const persistent =
  (given: RedisOptions['sentinelRetryStrategy'] | null, otherwise = reconnectInMs) =>
  (attempt: number): number => {
    const ms = given?.(attempt);
    return typeof ms === 'number' ? ms : otherwise(attempt);
  };
