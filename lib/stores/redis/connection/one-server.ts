import { addressOf, duplicateOf, placeOf, type RedisAddress, type RedisLike } from './redis-client.js';
import { RedisConnection, type RedisConnectionOptions } from './redis-connection.js';
import { RedisSubscriber } from './redis-subscriber.js';
import type { OneOfServers, RedisTopology } from './redis-topology.js';
import { StartingClients } from './starting-clients.js';
import { usesSentinels, setUpSentinels } from './sentinels/sentinel-settings.js';
import { SentinelWatch } from './sentinels/sentinel-watch.js';

/** One Redis server, or the current master of several: one connection for commands and one for messages. */
export class OneServer implements RedisTopology {
  readonly publish = 'PUBLISH';
  readonly hasQueues = true;
  readonly hasSlots = false;
  readonly address: RedisAddress;
  readonly place: string;
  readonly commands: RedisConnection;
  readonly channels: RedisSubscriber;
  onAgain: () => void = () => undefined;
  private readonly sentinels: SentinelWatch | undefined;
  private openDuplicate: (() => RedisTopology | undefined) | undefined;

  constructor(
    commands: RedisLike,
    subscriber: RedisLike,
    options: RedisConnectionOptions,
    starting = new StartingClients(),
  ) {
    this.address = addressOf(commands);
    this.place = placeOf(commands);
    this.sentinels = usesSentinels(commands)
      ? new SentinelWatch([commands, subscriber], starting, options.runtime)
      : undefined;
    this.commands = new RedisConnection(commands, options);
    this.channels = new RedisSubscriber(subscriber, options);
    this.commands.onAgain = () => this.onAgain();
    this.openDuplicate = () => {
      const [one, other] = [duplicateOf(commands), duplicateOf(subscriber)];
      if (!one || !other) return undefined;
      const { timeoutMs, runtime } = options;
      return new OneServer(setUpSentinels(one), setUpSentinels(other), { timeoutMs, runtime, isCheck: true });
    };
  }

  set onWarning(listener: (warning: string) => void) {
    if (this.sentinels) this.sentinels.onWarning = listener;
  }

  get subscriptions(): number {
    return this.channels.size;
  }

  ready(): undefined {
    return undefined;
  }

  connectionTo(): RedisConnection {
    return this.commands;
  }

  connectionOf(): RedisConnection {
    return this.commands;
  }

  groupOf(): number {
    return 0;
  }

  async requestEach<T>(request: (server: OneOfServers) => Promise<T>): Promise<readonly T[]> {
    return [await request({ connection: this.commands })];
  }

  duplicate(): RedisTopology | undefined {
    return this.openDuplicate?.();
  }

  close(): void {
    this.openDuplicate = undefined;
    this.sentinels?.close();
    this.commands.close();
    this.channels.close();
  }
}
