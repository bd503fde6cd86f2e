import { LOOPBACK } from '../../support/loopback.js';
import type { Doorway } from '../../support/servers/redis-cluster.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { TcpProxy, type DataListener, type ProxyConnection } from '../../support/tcp-proxy.js';

/** The bus of a cluster listens at the port of the server, and so much more. */
const BUS_OFFSET = 10_000;
/** Where in its first message on the bus a server says its name. */
const SENDER = { from: 40, to: 80 } as const;

/** Where the other servers come in at one server, and clients do not: the network between servers. */
export class ServerDoor implements Doorway, AsyncDisposable {
  /** Who sends on each connection of the bus, by its name in the cluster. */
  private readonly senders = new WeakMap<ProxyConnection, string>();
  private readonly shutOut = new Set<string>();
  private keepsCopiesOut = false;

  private constructor(
    private readonly target: { host: string; port: number },
    private readonly busTarget: { host: string; port: number },
    private readonly proxy: TcpProxy,
    private readonly bus: TcpProxy,
  ) {
    const sender: DataListener = (connection, direction, chunk) => {
      if (direction !== 'toServer' || this.senders.has(connection)) return;
      const name = chunk.toString('latin1', SENDER.from, SENDER.to);
      this.senders.set(connection, name);
      if (this.shutOut.has(name)) connection.blackhole();
    };
    bus.onData(sender);
    proxy.onData((connection, direction, chunk) => {
      if (this.keepsCopiesOut && direction === 'toServer' && isCopying(chunk)) connection.blackhole();
    });
  }

  static async start(): Promise<ServerDoor> {
    const nowhere = (): { host: string; port: number } => ({ host: LOOPBACK, port: 1 });
    const [target, busTarget] = [nowhere(), nowhere()];
    return new ServerDoor(target, busTarget, await TcpProxy.start(target), await TcpProxy.start(busTarget));
  }

  get port(): number {
    return this.proxy.port;
  }

  get busPort(): number {
    return this.bus.port;
  }

  leadsTo({ port }: RedisServer): void {
    this.target.port = port;
    this.busTarget.port = port + BUS_OFFSET;
  }

  /** Nothing of the other servers gets in, nor out on what they have opened. */
  shut(): void {
    this.proxy.blackhole();
    this.bus.blackhole();
  }

  /** The same of one server, by its name in the cluster. */
  shutOutOnBus(name: string): void {
    this.shutOut.add(name);
    for (const connection of this.bus.connections) {
      if (this.senders.get(connection) === name) connection.blackhole();
    }
  }

  /** Replicas do not hear what this server is asked. */
  keepCopiesOut(): void {
    this.keepsCopiesOut = true;
    for (const connection of this.proxy.find('psync')) connection.blackhole();
  }

  /** Ends all of that. */
  async open(): Promise<void> {
    this.shutOut.clear();
    this.keepsCopiesOut = false;
    await this.proxy.restore();
    await this.bus.restore();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.proxy.close();
    this.bus.close();
  }
}

const isCopying = (chunk: Buffer): boolean => /psync/i.test(chunk.toString('latin1'));
