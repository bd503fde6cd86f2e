/**
 * The few things the store needs of an ioredis client. Structural, because the types of ioredis 5 and 6 cannot
 * be assigned to each other.
 */
export interface RedisLike {
  readonly status: string;
  readonly options: object;
  connect(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  on(event: 'connect' | 'ready' | 'close' | 'reconnecting' | 'end' | 'moved', listener: () => void): unknown;
  on(event: 'error' | 'sentinelError', listener: (error: Error) => void): unknown;
  on(event: 'message' | 'smessage', listener: (channel: string, message: string) => void): unknown;
}

/** The two connections the store opens. */
export type ConnectionRole = 'commands' | 'subscriber';

/** The socket under a client; ioredis does not declare it. */
interface WithStream {
  readonly stream?: ClientSocket | null;
}

export interface ClientSocket {
  readonly bytesRead?: number;
  readonly writableCorked?: number;
  readonly destroyed?: boolean;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  destroy(): void;
  cork?(): void;
  uncork?(): void;
  ref?(): void;
  unref?(): void;
}

/** What a client has chosen on its connection; ioredis does not declare it. */
interface WithCondition {
  readonly condition?: { readonly select?: unknown } | null;
}

/** The database that a client uses: the one it has chosen since, or that of its options. */
export const databaseOf = (client: RedisLike): number => {
  const chosen = (client as WithCondition).condition?.select ?? (client.options as { db?: unknown }).db;
  return Number(chosen ?? 0);
};

/** Where a client connects to. `isOneServer`: not to whichever of several is the master at the time. */
export interface RedisAddress {
  readonly name: string;
  readonly isOneServer: boolean;
}

export const addressOf = (client: RedisLike): RedisAddress => {
  const { host, port, path, sentinels, name } = client.options as Partial<
    Record<'host' | 'port' | 'path' | 'name' | 'sentinels', unknown>
  >;
  const text = (value: unknown, otherwise: string): string =>
    typeof value === 'string' || typeof value === 'number' ? String(value) : otherwise;
  if (sentinels) return { name: text(name, 'the master'), isOneServer: false };
  if (path !== undefined && path !== null) return { name: text(path, 'a socket'), isOneServer: true };
  const at = text(host, 'localhost')
    .toLowerCase()
    .replace(/^localhost$/, '127.0.0.1');
  return { name: `${at}:${text(port, '6379')}`, isOneServer: true };
};

/** The socket of a client, unless it has been destroyed. */
export const socketOf = (client: RedisLike): ClientSocket | undefined => {
  const { stream } = client as WithStream;
  return stream && !stream.destroyed ? stream : undefined;
};

/** What a client knows of its next attempt; ioredis does not declare it. */
interface WithAttempts {
  status: string;
  readonly reconnectTimeout?: unknown;
}

/**
 * Whether a client says that it is ready, although its connection has ended meanwhile. ioredis 5 does where the server has not
 * replied to its CLIENT SETINFO, and then takes itself for connected at each attempt to connect. So its state is put right.
 */
export const isReadyInVain = (client: RedisLike): boolean => {
  if (!(client as WithStream).stream?.destroyed) return false;
  const attempts = client as unknown as WithAttempts;
  attempts.status = attempts.reconnectTimeout ? 'reconnecting' : 'end';
  return true;
};

/** How much has arrived on the current socket; 0 where that cannot be told. */
export const bytesHeard = (client: RedisLike): number => (client as WithStream).stream?.bytesRead ?? 0;

/**
 * Drops the socket at once and lets the client reconnect. A polite end would wait for the other side, which on a
 * half-open connection never comes.
 */
export const dropSocket = (client: RedisLike): void => {
  const { stream } = client as WithStream;
  if (stream) stream.destroy();
  else client.disconnect(true);
};

/** Sends all that is asked for within this tick in one packet. */
export const gatherTick = (client: RedisLike): void => {
  const { stream } = client as WithStream;
  if (!stream?.cork || stream.writableCorked !== 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork?.());
};

/** A further client with the same settings; undefined where the client cannot make one. */
export const twinOf = (client: RedisLike): RedisLike | undefined =>
  (client as { duplicate?(): RedisLike }).duplicate?.();
