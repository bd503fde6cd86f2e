import type { Watch } from '../../../core/seam/lock-store.js';
import type { Commands } from './commands.js';
import type { RedisAddress } from './redis-client.js';
import type { RedisConnection } from './redis-connection.js';
import type { RedisSession } from './redis-session.js';
import type { MessageListener } from './redis-subscriber.js';

/** Hears channels, each where it is announced. */
export interface Channels {
  /** Calls `listener` as `KindStore.watch` says, for one channel. Give each watch a listener of its own. */
  watch(channel: string, listener: MessageListener): Watch;
  /** True when messages of the channel arrive here. */
  isLive(channel: string): boolean;
}

/** One server, or the servers of a cluster: which connections there are, and which one leads to a name. */
export interface RedisTopology {
  readonly commands: Commands;
  readonly channels: Channels;
  /** The command by which the end of a hold is announced. */
  readonly publish: 'PUBLISH' | 'SPUBLISH';
  /** False where a process can be told of its turn by no channel of its own. */
  readonly hasTurns: boolean;
  /** Channels on which processes are told of their turn lie in a slot, as keys do. */
  readonly hasSlots: boolean;
  /** Where it connects to. */
  readonly address: RedisAddress;
  /** Number of channels that somebody waits on; for tests. */
  readonly subscriptions: number;
  /** Whether there is a connection at the moment. */
  readonly isConnected: boolean;
  /** Told when there is a connection again to where holds may be, before anything is asked on it. */
  onAgain: () => void;
  /** Receives what is found out while locks are taken, as a sentence for the log. */
  onWarning?: (warning: string) => void;
  /** Resolves when it is known how the servers are asked; undefined when it is. */
  ready(): Promise<void> | undefined;
  /** The connection to the server that has the name, as far as that is known. */
  connectionTo(name: string): RedisConnection | undefined;
  /** The connection that the session is a life of, if it is still there. */
  connectionOf(session: RedisSession): RedisConnection | undefined;
  /** Resolves when there is a connection to the server that has the name. Waits for it within the command time-out. */
  openedTo(name: string): Promise<unknown>;
  /** Names that give the same are on one server, and one script can be run for them together. */
  groupOf(name: string): number;
  /** Asks each server. `name`: what tells it from the others; undefined where there is only one. */
  askEach<T>(ask: (connection: RedisConnection, name?: string) => Promise<T>): Promise<readonly T[]>;
  /** Further connections with the same settings, to be closed by whoever asks; undefined where none can be made. */
  twin(): RedisTopology | undefined;
  close(): void;
}
