/**
 * The parts of an ioredis client that the store uses. A structural type, because the types of ioredis 5 and 6 cannot be
 * assigned to each other.
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

/** Name of one of the two connections that the store opens. */
export type ConnectionRole = 'commands' | 'subscriber';

/** Socket of a client, which ioredis does not declare. */
interface WithStream {
  readonly stream?: ClientSocket | null;
}

export interface ClientSocket {
  readonly bytesRead?: number;
  readonly writableCorked?: number;
  readonly destroyed?: boolean;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  destroy(error?: Error): void;
  emit?(event: string | symbol, ...args: unknown[]): boolean;
  cork?(): void;
  uncork?(): void;
  ref?(): void;
  unref?(): void;
}

/** Database that a client has selected, which ioredis does not declare. */
interface WithCondition {
  readonly condition?: { readonly select?: unknown } | null;
}

/** Returns the database that the client uses: the one that it selected last, else the one of its options. */
export const databaseOf = (client: RedisLike): number => {
  const chosen = (client as WithCondition).condition?.select ?? (client.options as { db?: unknown }).db;
  return Number(chosen ?? 0);
};

/** Address that a client connects to. `isOneServer` is false when it leads to the current master of several servers. */
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

interface Sentinel {
  readonly host?: string;
  readonly port?: number;
}

/** Returns where the keys of a client are. Masters of several groups of sentinels may have one name. */
export const placeOf = (client: RedisLike): string => {
  const { sentinels } = client.options as { readonly sentinels?: readonly Sentinel[] | null };
  const servers = (sentinels ?? []).map(({ host = 'localhost', port = 26_379 }) => `${host}:${port}`).sort();
  return [...servers, addressOf(client).name, databaseOf(client)].join('/');
};

/** Returns the socket of a client, unless it is destroyed. */
export const socketOf = (client: RedisLike): ClientSocket | undefined => {
  const { stream } = client as WithStream;
  return stream && !stream.destroyed ? stream : undefined;
};

/** Connection attempts of a client, which ioredis does not declare. */
interface WithAttempts {
  status: string;
  readonly reconnectTimeout?: unknown;
}

/**
 * Returns whether a client says that it is ready although its connection has ended, and corrects its status.
 *
 * ioredis 5 gets into this state when the server has not replied to CLIENT SETINFO. At each attempt to connect it then
 * believes that it is connected.
 */
export const isReadyInVain = (client: RedisLike): boolean => {
  if (!(client as WithStream).stream?.destroyed) return false;
  const attempts = client as unknown as WithAttempts;
  attempts.status = attempts.reconnectTimeout ? 'reconnecting' : 'end';
  return true;
};

/** Returns how many bytes have arrived on the current socket; 0 when that is unknown. */
export const bytesReceived = (client: RedisLike): number => (client as WithStream).stream?.bytesRead ?? 0;

/**
 * Destroys the socket at once, so that the client reconnects. A graceful end would wait for the other side,
 * which never replies on a half-open connection.
 */
export const dropSocket = (client: RedisLike): void => {
  const { stream } = client as WithStream;
  if (stream) stream.destroy();
  else client.disconnect(true);
};

/**
 * Destroys the current socket when the parser of the client throws. The parser of ioredis 5 does that for lengths and depths
 * that it cannot handle, in a listener of the socket, where it would end the process.
 */
export const dropWhereParserThrows = (client: RedisLike): void => {
  const { stream } = client as WithStream;
  const emit = stream?.emit?.bind(stream);
  if (!stream || !emit) return;
  stream.emit = (event, ...args) => {
    if (event !== 'data') return emit(event, ...args);
    try {
      return emit(event, ...args);
    } catch (error) {
      stream.destroy(error as Error);
      return true;
    }
  };
};

/** Sends all requests of this tick in one packet. */
export const gatherTick = (client: RedisLike): void => {
  const { stream } = client as WithStream;
  if (!stream?.cork || stream.writableCorked !== 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork?.());
};

/** Creates another client with the same settings; returns undefined when the client cannot be duplicated. */
export const duplicateOf = (client: RedisLike): RedisLike | undefined =>
  (client as { duplicate?(): RedisLike }).duplicate?.();
