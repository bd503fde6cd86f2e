import { connect, createServer, type Server, type Socket } from 'node:net';
import { listen, listenOnFreePort, LOOPBACK } from './loopback.js';
import { BOTH, HEALTHY, ProxyConnection, setFor, type Direction } from './proxy-connection.js';

export { ProxyConnection, type Direction } from './proxy-connection.js';

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

  private constructor(
    /** Where new connections lead. */
    public target: { readonly host?: string; readonly port: number },
  ) {}

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
  refuse(): void {
    // The port is closed at once; only the callback of close() would wait for the open connections.
    this.accepting?.close();
    this.accepting = undefined;
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
  close(): void {
    this.refuse();
    this.listeners.clear();
    this.cut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
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
