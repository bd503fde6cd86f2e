import { Redis, type RedisOptions } from 'ioredis';
import type { CreateRedisClient } from '../../../../lib/stores/redis/connection/redis-settings.js';

/** How a worker's connections are called in CLIENT LIST. */
export const connectionName = (process: string, role: 'commands' | 'subscriber'): string =>
  `${process}-${role}`;

/** Makes the store's clients, so that faults can tell them apart. */
export class NamedClients {
  private readonly made: Redis[] = [];

  constructor(private readonly process: string) {}

  /** Clients of what is at this address. */
  at(address: RedisOptions): CreateRedisClient {
    return (role, settings) => {
      const connectionNameOf = connectionName(this.process, role);
      const client = new Redis({ ...address, ...settings, connectionName: connectionNameOf });
      this.made.push(client);
      return client;
    };
  }

  /** Whether all that were asked to connect are connected. */
  get areUp(): boolean {
    return this.made.every(({ status }) => status === 'ready' || status === 'wait');
  }

  /** How many listeners there are on all of them. */
  get listeners(): number {
    return this.made
      .flatMap((client) => client.eventNames().map((name) => client.listenerCount(name)))
      .reduce((sum, count) => sum + count, 0);
  }
}
