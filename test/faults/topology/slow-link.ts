import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenOnFreePort, LOOPBACK, reset } from '../../support/loopback.js';

/** How what is sent is cut up: pieces of this size, with a pause between them. */
export interface Pace {
  readonly pieceBytes: number;
  readonly pauseMs: number;
}

/** Passes on what one side sends, in one piece or in many. */
class Trickle {
  private readonly queue: Buffer[] = [];
  private running = false;
  private ended = false;

  constructor(
    private readonly to: Socket,
    private readonly paceNow: () => Pace | undefined,
  ) {}

  push(chunk: Buffer): void {
    if (!this.running && !this.paceNow()) return void this.to.write(chunk);
    this.queue.push(chunk);
    this.run();
  }

  end(): void {
    this.ended = true;
    if (!this.running) this.to.end();
  }

  private run(): void {
    if (this.running) return;
    this.running = true;
    const next = (): void => {
      const first = this.queue.shift();
      if (!first || this.to.destroyed) {
        this.running = false;
        if (this.ended) this.to.end();
        return;
      }
      const pace = this.paceNow();
      const size = pace?.pieceBytes ?? first.length;
      this.to.write(first.subarray(0, size));
      if (size < first.length) this.queue.unshift(first.subarray(size));
      if (pace && pace.pauseMs > 0) setTimeout(next, pace.pauseMs);
      else setImmediate(next);
    };
    next();
  }
}

/**
 * A stretch of line whose speed can be changed: it splits commands and replies over packets, anywhere, and passes on
 * only so many bytes in a second. It loses nothing.
 */
export class SlowLink implements AsyncDisposable {
  private pace: Pace | undefined;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  readonly host = LOOPBACK;

  static async start(target: { readonly host: string; readonly port: number }): Promise<SlowLink> {
    const links: { current?: SlowLink } = {};
    const server = createServer({ allowHalfOpen: true }, (client) => links.current?.join(client, target));
    const link = new SlowLink(server, await listenOnFreePort(server));
    links.current = link;
    return link;
  }

  /** For all connections, from now on. Undefined: as fast as it can. */
  setPace(pace: Pace | undefined): void {
    this.pace = pace;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private join(client: Socket, target: { readonly host: string; readonly port: number }): void {
    const server = connect({ ...target, allowHalfOpen: true });
    const paceNow = (): Pace | undefined => this.pace;
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      const trickle = new Trickle(to, paceNow);
      this.sockets.add(from);
      from.setNoDelay(true);
      from.on('data', (chunk) => trickle.push(chunk));
      from.on('end', () => trickle.end());
      from.on('error', () => reset(to));
      from.on('close', () => {
        this.sockets.delete(from);
        // What is still under way belongs to a connection that has ended in order.
        if (!from.readableEnded) to.destroy();
      });
    }
  }
}
