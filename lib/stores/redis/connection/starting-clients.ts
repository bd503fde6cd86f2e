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
  /** Undefined once the app has started. Private to the language: clients know the password. */
  #clients: Set<RedisLike> | undefined = new Set();
  private isStarting = false;
  private isNeeded: () => boolean = () => true;

  /** See `LockStore.startsWithApp`. */
  begin(isNeeded: () => boolean): () => void {
    this.isStarting = true;
    this.isNeeded = isNeeded;
    // A function may give clients that are connected.
    for (const client of this.#clients ?? []) this.letGo(client);
    return () => this.end();
  }

  /** Watches a new client. */
  add(client: RedisLike): RedisLike {
    this.#clients?.add(client);
    client.on('connect', () => this.letGo(client));
    client.on('reconnecting', () => this.letGo(client));
    client.on('end', () => this.#clients?.delete(client));
    if (asksSentinels(client)) this.limitRetries(client.options);
    return client;
  }

  private letGo(client: RedisLike): void {
    if (!this.isStarting) return;
    this.#clients?.add(client);
    socketOf(client)?.unref?.();
    (client as WithReconnectTimer).reconnectTimeout?.unref?.();
  }

  private end(): void {
    const clients = this.#clients ?? [];
    this.#clients = undefined;
    this.isStarting = false;
    for (const client of clients) {
      socketOf(client)?.ref?.();
      (client as WithReconnectTimer).reconnectTimeout?.ref?.();
    }
  }

  /** The pause of ioredis before it asks all sentinels again keeps the process alive: ends the attempts, until the next request. */
  private limitRetries(options: WithSentinelRetry): void {
    const { sentinelRetryStrategy: retry } = options;
    options.sentinelRetryStrategy = (attempt) =>
      this.isStarting && !this.isNeeded() ? null : retry?.(attempt);
  }
}
