import { RedisConnection, type RedisConnectionOptions } from '../connection/redis-connection.js';
import type { RedisLike } from '../connection/redis-client.js';
import { RedisSubscriber } from '../connection/redis-subscriber.js';
import type { NodeAddress } from './slots.js';

/** What the servers of one cluster have in common. */
export interface ServerOptions extends RedisConnectionOptions {
  connect(address: NodeAddress): RedisLike;
  /** Whether it listens with sharded Pub/Sub. Asked when it first listens. */
  isSharded(): boolean;
  /** Slots may have moved: the server no longer tells us what is announced there. */
  onMoved(): void;
}

/** One server of a cluster: a connection for commands and, where somebody waits there, one to listen. */
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

  /** Number of channels that somebody waits on. */
  get subscriptions(): number {
    return this.listening?.size ?? 0;
  }

  /** @param why what is told to whoever waits for it. */
  close(why?: string): void {
    this.closed = true;
    this.connection.close(why);
    this.listening?.close();
  }

  private listen(): RedisSubscriber {
    const { options } = this;
    const subscriber = new RedisSubscriber(options.connect(this.at), options.timeoutMs, {
      isSharded: options.isSharded(),
      onMoved: () => options.onMoved(),
    });
    if (this.closed) subscriber.close();
    return subscriber;
  }
}
