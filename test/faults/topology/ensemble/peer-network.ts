import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenOnFreePort, LOOPBACK } from '../../../support/loopback.js';
import { ProxyConnection } from '../../../support/proxy-connection.js';

/** Messages of SOCKS 5: no password is needed; the connection is there; or it was refused. */
const NO_PASSWORD = Buffer.from([5, 0]);
const GRANTED = Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
const REFUSED = Buffer.from([5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
const GREETING_BYTES = 2;
/** Length of a request for an address of 4 bytes, with the port at its end. */
const REQUEST_BYTES = 10;
const PORT_AT = 8;

/** A connection from one server to a port of another one. */
interface Line {
  /** Number of the server that has connected, from 0. */
  readonly from: number;
  readonly port: number;
  readonly connection: ProxyConnection;
}

/**
 * The network between the servers of an ensemble. Each server connects to the others through a proxy of SOCKS of its own.
 * So faults can be done to what one server says to another, and clients are not concerned.
 */
export class PeerNetwork implements AsyncDisposable {
  private readonly lines = new Set<Line>();
  private readonly sockets = new Set<Socket>();
  private isCutOff: (line: Pick<Line, 'from' | 'port'>) => boolean = () => false;

  private constructor(private readonly exits: { readonly listener: Server; readonly port: number }[]) {}

  static async start(servers: number): Promise<PeerNetwork> {
    const network = new PeerNetwork([]);
    for (let from = 0; from < servers; from++) {
      const listener = createServer({ allowHalfOpen: true }, (client) => void network.accept(from, client));
      network.exits.push({ listener, port: await listenOnFreePort(listener) });
    }
    return network;
  }

  /** System properties that let a server connect through its proxy. */
  propertiesOf(server: number): Readonly<Record<string, string | number>> {
    return {
      socksProxyHost: LOOPBACK,
      socksProxyPort: this.exits[server]!.port,
      // Otherwise addresses of this machine are excepted.
      socksNonProxyHosts: '',
      'java.net.preferIPv4Stack': 'true',
    };
  }

  /** Nothing gets through between this server, which listens at these ports, and the others, until {@link restore}. */
  isolate(server: number, ports: readonly number[]): void {
    this.isCutOff = ({ from, port }) => from === server || ports.includes(port);
    for (const line of this.lines) if (this.isCutOff(line)) line.connection.blackhole();
  }

  restore(): void {
    this.isCutOff = () => false;
    for (const { connection } of this.lines) connection.restore();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { listener } of this.exits) listener.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private async accept(from: number, client: Socket): Promise<void> {
    this.track(client);
    try {
      const [, methods] = await read(client, GREETING_BYTES);
      await read(client, methods!);
      client.write(NO_PASSWORD);
      const port = (await read(client, REQUEST_BYTES)).readUInt16BE(PORT_AT);
      const server = connect({ host: LOOPBACK, port, allowHalfOpen: true });
      this.track(server);
      await once(server, 'connect');
      client.write(GRANTED);
      this.join({ from, port }, client, server);
    } catch {
      client.end(REFUSED);
    }
  }

  private join(about: Pick<Line, 'from' | 'port'>, client: Socket, server: Socket): void {
    const connection = new ProxyConnection(0, client, server, () => undefined);
    const line = { ...about, connection };
    this.lines.add(line);
    if (this.isCutOff(line)) connection.blackhole();
    server.once('close', () => this.lines.delete(line));
    client.resume();
  }

  private track(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.sockets.delete(socket));
  }
}

const read = async (socket: Socket, bytes: number): Promise<Buffer> => {
  for (;;) {
    const chunk = socket.read(bytes) as Buffer | null;
    if (chunk) return chunk;
    if (socket.readableEnded || socket.destroyed) throw new Error('the server has closed the connection');
    await once(socket, 'readable');
  }
};
