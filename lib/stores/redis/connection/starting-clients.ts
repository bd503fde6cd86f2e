import { socketOf, type RedisLike } from './redis-client.js';
import { asksSentinels, type WithSentinelRetry } from './sentinels/sentinel-settings.js';

/** The timer of the next attempt to connect; ioredis does not declare it. */
interface WithReconnectTimer {
  readonly reconnectTimeout?: Partial<NodeJS.Timeout> | null;
}

/**
 * The clients of a store whose app has not started yet: see `LockStore.startsWithApp`. Their idle connections do not keep the
 * process alive, and neither do their attempts to connect again.
 */
export class StartingClients {
  /** Clients whose connection does not keep the process alive; undefined while no app starts. */
  private idle: Set<RedisLike> | undefined;
  private isNeeded: () => boolean = () => true;

  /** See `LockStore.startsWithApp`. */
  begin(isNeeded: () => boolean): () => void {
    this.idle = new Set();
    this.isNeeded = isNeeded;
    return () => this.end();
  }

  /** Watches a new client. */
  add(client: RedisLike): RedisLike {
    client.on('connect', () => this.letGo(client));
    client.on('reconnecting', () => this.letGo(client));
    client.on('end', () => this.idle?.delete(client));
    if (asksSentinels(client)) this.limitRetries(client.options);
    return client;
  }

  private letGo(client: RedisLike): void {
    if (!this.idle) return;
    this.idle.add(client);
    socketOf(client)?.unref?.();
    (client as WithReconnectTimer).reconnectTimeout?.unref?.();
  }

  private end(): void {
    const { idle = [] } = this;
    this.idle = undefined;
    for (const client of idle) {
      socketOf(client)?.ref?.();
      (client as WithReconnectTimer).reconnectTimeout?.ref?.();
    }
  }

  /** The pause of ioredis before it asks all sentinels again keeps the process alive: ends the attempts, until the next request. */
  private limitRetries(options: WithSentinelRetry): void {
    const { sentinelRetryStrategy: retry } = options;
    options.sentinelRetryStrategy = (attempt) => (this.idle && !this.isNeeded() ? null : retry?.(attempt));
  }
}
