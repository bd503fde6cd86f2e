import { RedisConnection, type RedisConnectionOptions } from '../connection/redis-connection.js';
import type { RedisLike } from '../connection/redis-client.js';
import { RedisSubscriber } from '../connection/redis-subscriber.js';
import type { NodeAddress } from './slots.js';

/** Options that the servers of one cluster share. */
export interface ServerOptions extends RedisConnectionOptions {
  connect(address: NodeAddress): RedisLike;
  /** Returns whether to listen with sharded Pub/Sub. Called when the server is first listened to. */
  isSharded(): boolean;
  /** Called when slots may have moved: the server no longer sends their messages. */
  onMoved(): void;
}

/** One server of a cluster: a connection for commands and, once a caller waits there, one for messages. */
export class ClusterServer {
  readonly connection: RedisConnection;
  private listening: RedisSubscriber | undefined;
  private closed = false;

  constructor(
    readonly at: NodeAddress,
    private readonly options: ServerOptions,
  ) {
    this.connection = new RedisConnection(options.connect(at), options);
  }

  get subscriber(): RedisSubscriber {
    return (this.listening ??= this.listen());
  }

  /** Number of channels with waiters. */
  get subscriptions(): number {
    return this.listening?.size ?? 0;
  }

  /**  @param why message of the failure that waiting requests get */
  close(why?: string): void {
    this.closed = true;
    this.connection.close(why);
    this.listening?.close();
  }

  private listen(): RedisSubscriber {
    const { options } = this;
    const subscriber = new RedisSubscriber(options.connect(this.at), {
      timeoutMs: options.timeoutMs,
      runtime: options.runtime,
      isSharded: options.isSharded(),
      onMoved: () => options.onMoved(),
    });
    if (this.closed) subscriber.close();
    return subscriber;
  }
}
