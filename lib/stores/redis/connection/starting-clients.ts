import type { AppStart } from '../../../core/seam/lock-store.js';
import { socketOf, type RedisLike } from './redis-client.js';
import { usesSentinels, type WithSentinelRetry } from './sentinels/sentinel-settings.js';

/** Timer of the next attempt to connect, which ioredis does not declare. */
interface WithReconnectTimer {
  readonly reconnectTimeout?: Partial<NodeJS.Timeout> | null;
}

/**
 * The clients of a store whose app has not started yet: see {@link AppStart}. Neither their idle connections
 * nor their attempts to reconnect keep the process alive.
 */
export class StartingClients {
  /** Undefined once the app has started. ECMAScript-private: clients know the password. */
  #clients: Set<RedisLike> | undefined = new Set();
  private start: AppStart | undefined;

  begin(start: AppStart): void {
    this.start = start;
    start.whenOver(() => this.end());
    // Clients from a factory function may be connected already.
    for (const client of this.#clients ?? []) this.letGo(client);
  }

  /** Registers a new client. */
  add(client: RedisLike): RedisLike {
    this.#clients?.add(client);
    client.on('connect', () => this.letGo(client));
    client.on('reconnecting', () => this.letGo(client));
    client.on('end', () => this.#clients?.delete(client));
    if (usesSentinels(client)) this.limitRetries(client.options);
    return client;
  }

  private letGo(client: RedisLike): void {
    if (!this.start) return;
    this.#clients?.add(client);
    socketOf(client)?.unref?.();
    (client as WithReconnectTimer).reconnectTimeout?.unref?.();
  }

  private end(): void {
    const clients = this.#clients ?? [];
    this.#clients = undefined;
    this.start = undefined;
    for (const client of clients) {
      socketOf(client)?.ref?.();
      (client as WithReconnectTimer).reconnectTimeout?.ref?.();
    }
  }

  /** Ends the attempts to reach sentinels until the next request: their pauses keep the process alive. */
  private limitRetries(options: WithSentinelRetry): void {
    const { sentinelRetryStrategy: retry } = options;
    options.sentinelRetryStrategy = (attempt) => (this.start?.isNeeded === false ? null : retry?.(attempt));
  }
}
