import { connect, createServer, type Server, type Socket } from 'node:net';
import { listen, listenOnFreePort, LOOPBACK } from './loopback.js';

/** `toServer`: requests. `toClient`: replies. */
export type Direction = 'toServer' | 'toClient';

/** What a link does with what it is given: pass it on, keep it for later, or lose it. */
type Mode = 'forward' | 'hold' | 'drop';

interface Faults {
  readonly mode: Readonly<Record<Direction, Mode>>;
  readonly delayMs: Readonly<Record<Direction, number>>;
}

const HEALTHY: Faults = {
  mode: { toServer: 'forward', toClient: 'forward' },
  delayMs: { toServer: 0, toClient: 0 },
};
const BOTH: readonly Direction[] = ['toServer', 'toClient'];
const REMEMBERED_CHARS = 64 * 1024;

const setFor = <T>(record: Readonly<Record<Direction, T>>, directions: readonly Direction[], value: T) => ({
  ...record,
  ...Object.fromEntries(directions.map((direction) => [direction, value])),
});

/** One direction of one connection: a queue of what came in, each with the time from which it may go out. */
class Link {
  private readonly queue: { readonly dueAt: number; readonly deliver: () => void }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private mode: Mode = 'forward';
  private delayMs = 0;
  /** True once something was lost: what comes later no longer belongs to what came before. */
  broken = false;

  constructor(private readonly sink: Socket) {}

  set(mode: Mode, delayMs: number): void {
    this.mode = mode;
    this.delayMs = delayMs;
    this.pump();
  }

  data(chunk: Buffer): void {
    this.put(() => this.sink.write(chunk));
  }

  end(): void {
    this.put(() => this.sink.end());
  }

  gone(): void {
    this.put(() => this.sink.destroy());
  }

  clear(): void {
    clearTimeout(this.timer);
    this.queue.length = 0;
  }

  private put(deliver: () => void): void {
    if (this.mode === 'drop') {
      this.broken = true;
      return;
    }
    this.queue.push({ dueAt: performance.now() + this.delayMs, deliver });
    this.pump();
  }

  private pump(): void {
    clearTimeout(this.timer);
    if (this.mode === 'hold') return;
    for (let next = this.queue[0]; next; next = this.queue[0]) {
      const waitMs = next.dueAt - performance.now();
      if (waitMs > 0) {
        this.timer = setTimeout(() => this.pump(), waitMs);
        return;
      }
      this.queue.shift();
      if (!this.sink.destroyed) next.deliver();
    }
  }
}

/** One client's connection through the proxy. Its faults can differ from those of the others. */
export class ProxyConnection {
  private readonly links: Readonly<Record<Direction, Link>>;
  private readonly seen: Record<Direction, string> = { toServer: '', toClient: '' };
  private faults = HEALTHY;

  constructor(
    /** Counts up from 1 in the order in which clients connected. */
    readonly id: number,
    private readonly client: Socket,
    private readonly server: Socket,
    onData: (direction: Direction, chunk: Buffer) => void,
  ) {
    this.links = { toServer: new Link(server), toClient: new Link(client) };
    this.wire('toServer', client, onData);
    this.wire('toClient', server, onData);
  }

  /** Whether the last 64 KiB that went this way contain `text`, as the client's commands do: `'SUBSCRIBE'`. */
  carried(text: string, direction: Direction = 'toServer'): boolean {
    return this.seen[direction].toLowerCase().includes(text.toLowerCase());
  }

  /** Lets everything take this much longer, in ms, from now on. */
  delay(delayMs: number, directions: readonly Direction[] = BOTH): void {
    this.apply({ ...this.faults, delayMs: setFor(this.faults.delayMs, directions, delayMs) });
  }

  /**
   * Half-open: nothing goes through, not even the end of a connection, and nobody is told. What is sent meanwhile
   * arrives after `restore`, as it does when a network heals in time.
   */
  blackhole(directions: readonly Direction[] = BOTH): void {
    this.apply({ ...this.faults, mode: setFor(this.faults.mode, directions, 'hold') });
  }

  /** Requests arrive and are carried out, their replies are lost. `restore` then cuts the connection. */
  swallowReplies(): void {
    this.apply({ ...this.faults, mode: setFor(this.faults.mode, ['toClient'], 'drop') });
  }

  /** Both ends see a reset connection, at once. */
  cut(): void {
    for (const direction of BOTH) this.links[direction].clear();
    this.client.resetAndDestroy();
    this.server.resetAndDestroy();
  }

  /** Ends every fault of this connection. One that has lost something is cut: no TCP connection goes on after that. */
  restore(): void {
    if (BOTH.some((direction) => this.links[direction].broken)) this.cut();
    else this.apply(HEALTHY);
  }

  /** @internal */
  apply(faults: Faults): void {
    this.faults = faults;
    for (const direction of BOTH)
      this.links[direction].set(faults.mode[direction], faults.delayMs[direction]);
  }

  private wire(
    direction: Direction,
    source: Socket,
    onData: (direction: Direction, chunk: Buffer) => void,
  ): void {
    const link = this.links[direction];
    source.setNoDelay(true);
    source.on('data', (chunk) => {
      this.seen[direction] = (this.seen[direction] + chunk.toString('latin1')).slice(-REMEMBERED_CHARS);
      onData(direction, chunk);
      link.data(chunk);
    });
    source.on('end', () => link.end());
    // Both a reset and the normal end arrive here; the other side hears of it through the same faulty link.
    source.on('error', () => link.gone());
    source.on('close', () => link.gone());
  }
}

export type DataListener = (connection: ProxyConnection, direction: Direction, chunk: Buffer) => void;

/**
 * A TCP proxy for one server, for putting faults between it and its clients. Methods of the proxy concern all its
 * connections and those to come; `find` and `connections` give single ones.
 *
 * @example
 * await using proxy = await TcpProxy.start(server);
 * const locks = connectTo(proxy.port);
 * proxy.swallowReplies();
 */
export class TcpProxy implements AsyncDisposable {
  private readonly open = new Set<ProxyConnection>();
  private readonly listeners = new Set<DataListener>();
  private faults = HEALTHY;
  private accepting: Server | undefined;
  private count = 0;
  private listeningPort = 0;

  private constructor(private readonly target: { readonly host?: string; readonly port: number }) {}

  static async start(target: { readonly host?: string; readonly port: number }): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.accepting = proxy.createListener();
    proxy.listeningPort = await listenOnFreePort(proxy.accepting);
    return proxy;
  }

  readonly host = LOOPBACK;

  get port(): number {
    return this.listeningPort;
  }

  /** For a server without TLS and password. */
  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  /** The connections that are open, oldest first. */
  get connections(): readonly ProxyConnection[] {
    return [...this.open];
  }

  /** How many connections there have been, closed ones included. */
  get connectionCount(): number {
    return this.count;
  }

  /** The open connections whose client has sent `text` lately: `find('subscribe')`. */
  find(text: string): readonly ProxyConnection[] {
    return this.connections.filter((connection) => connection.carried(text));
  }

  /**
   * Calls `listener` with each piece of data before it is passed on, so that it can set a fault on the connection
   * in time for this very piece. Returns a function that ends it.
   *
   * @example
   * const stop = proxy.onData((connection, direction, chunk) => {
   *   if (direction === 'toServer' && chunk.includes('evalsha')) connection.swallowReplies();
   * });
   */
  onData(listener: DataListener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** See {@link ProxyConnection.delay}. */
  delay(delayMs: number, directions: readonly Direction[] = BOTH): void {
    this.faults = { ...this.faults, delayMs: setFor(this.faults.delayMs, directions, delayMs) };
    for (const connection of this.open) connection.delay(delayMs, directions);
  }

  /** See {@link ProxyConnection.blackhole}. New connections are accepted, and hear nothing either. */
  blackhole(directions: readonly Direction[] = BOTH): void {
    this.faults = { ...this.faults, mode: setFor(this.faults.mode, directions, 'hold') };
    for (const connection of this.open) connection.blackhole(directions);
  }

  /** See {@link ProxyConnection.swallowReplies}. */
  swallowReplies(): void {
    this.faults = { ...this.faults, mode: setFor(this.faults.mode, ['toClient'], 'drop') };
    for (const connection of this.open) connection.swallowReplies();
  }

  /** Resets all connections, now. Clients may connect again at once: `refuse` prevents it. */
  cut(): void {
    for (const connection of this.open) connection.cut();
  }

  /** From now on new connections are refused (ECONNREFUSED). Those that are open stay. */
  async refuse(): Promise<void> {
    const { accepting } = this;
    this.accepting = undefined;
    // The callback of close() would wait for the open connections; the port itself is closed at once.
    accepting?.close();
    await Promise.resolve();
  }

  /** Ends every fault: new connections are accepted, and open ones work again (see {@link ProxyConnection.restore}). */
  async restore(): Promise<void> {
    this.faults = HEALTHY;
    for (const connection of this.open) connection.restore();
    if (this.accepting) return;
    this.accepting = this.createListener();
    await listen(this.accepting, this.listeningPort);
  }

  /** Cuts everything and stops listening. Safe to call twice. */
  async close(): Promise<void> {
    await this.refuse();
    this.listeners.clear();
    this.cut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private createListener(): Server {
    return createServer({ allowHalfOpen: true }, (client) => this.accept(client));
  }

  private accept(client: Socket): void {
    const server = connect({
      host: this.target.host ?? LOOPBACK,
      port: this.target.port,
      allowHalfOpen: true,
    });
    this.count += 1;
    const connection: ProxyConnection = new ProxyConnection(
      this.count,
      client,
      server,
      (direction, chunk) => {
        for (const listener of this.listeners) listener(connection, direction, chunk);
      },
    );
    this.open.add(connection);
    connection.apply(this.faults);
    const forget = () => {
      if (client.destroyed && server.destroyed) this.open.delete(connection);
    };
    client.once('close', forget);
    server.once('close', forget);
  }
}
