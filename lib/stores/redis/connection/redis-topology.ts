import type { Watch } from '../../../core/seam/lock-store.js';
import type { Commands } from './commands.js';
import type { RedisAddress } from './redis-client.js';
import type { RedisConnection } from './redis-connection.js';
import type { RedisSession } from './redis-session.js';
import type { MessageListener } from './redis-subscriber.js';

export interface Channels {
  /** Calls `listener` as described at `KindStore.watch`, for one channel. Each watch needs a listener of its own. */
  watch(channel: string, listener: MessageListener): Watch;
  /** Returns whether messages of the channel arrive here. */
  isLive(channel: string): boolean;
}

export interface OneOfServers {
  readonly connection: RedisConnection;
  /** Name that distinguishes the server; undefined when there is only one. */
  readonly name?: string;
  /** Name of a key that the server has; undefined when it has all keys. */
  readonly aKey?: string;
}

/** One server, or the servers of a cluster: their connections, and which one leads to a name. */
export interface RedisTopology {
  readonly commands: Commands;
  readonly channels: Channels;
  /** Command that announces the end of a hold. */
  readonly publish: 'PUBLISH' | 'SPUBLISH';
  /** Whether a process can be notified of its grants on a channel of its own. Without that there is no wait queue. */
  readonly hasQueues: boolean;
  /** Whether the channels for grants lie in a slot, as keys do. */
  readonly hasSlots: boolean;
  readonly address: RedisAddress;
  /** Where the keys are, without credentials. */
  readonly place: string;
  /** Number of channels with waiters; for tests. */
  readonly subscriptions: number;
  /** Called when there is a connection again to a server that may have holds, before any request is sent on it. */
  onAgain: () => void;
  /** Receives what is found out while locks are in use, as a sentence for the log. */
  onWarning?: (warning: string) => void;
  /** Resolves when it is known how to send requests to the servers; undefined when it is known already. */
  ready(): Promise<void> | undefined;
  /** Returns the connection to the server that has the name; undefined when that is unknown. */
  connectionTo(name: string): RedisConnection | undefined;
  /** Returns the connection that the session belongs to, if it is still there. */
  connectionOf(session: RedisSession): RedisConnection | undefined;
  /** Returns the group of a name. One server has all names of a group, and one script can use them together. */
  groupOf(name: string): number;
  /** Sends a request to each server. */
  requestEach<T>(request: (server: OneOfServers) => Promise<T>): Promise<readonly T[]>;
  /**
   * Opens further connections with the same settings, to be closed by the caller; undefined when it cannot. Their first
   * failed attempt to connect fails the requests that wait for it.
   */
  duplicate(): RedisTopology | undefined;
  close(): void;
}

/**
 * Returns the target with methods that first wait until it is known how to send requests to the servers. Scripts get
 * the announcing command as an argument, and that depends on it.
 */
export const whenReady = <T extends object>(
  topology: RedisTopology,
  target: T,
  names: readonly (keyof T)[],
): T => {
  if (!topology.hasSlots) return target;
  const own = Object.create(target) as T;
  for (const name of names) {
    const method = target[name] as ((...args: unknown[]) => Promise<unknown>) | undefined;
    if (!method) continue;
    const call = (...args: unknown[]): Promise<unknown> => {
      const ready = topology.ready();
      return ready ? ready.then(() => method.apply(target, args)) : method.apply(target, args);
    };
    Object.defineProperty(own, name, { value: call, configurable: true });
  }
  return own;
};
