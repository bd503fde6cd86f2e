import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';
import { RequestReader } from './request-reader.js';

interface Job {
  readonly socket: Socket;
  readonly messages: readonly Buffer[];
}

/** Last byte of the reply to a query when no transaction is open. */
const IDLE = 'I'.charCodeAt(0);

/**
 * Lets several connections share one PGlite, which supports only one. It runs one request at a time, as a whole. While
 * a transaction is open, it runs only requests of its connection. (`@electric-sql/pglite-socket` 0.2 interleaves the
 * messages of requests, so that a Bind may meet another connection's Parse.)
 */
export class PgliteServer {
  private readonly server = createServer({ noDelay: true }, (socket) => this.serve(socket));
  private readonly sockets = new Set<Socket>();
  private jobs: Job[] = [];
  private inTransaction: Socket | undefined;
  private working = false;

  constructor(private readonly db: PGlite) {}

  /** Listens on a free port of the loopback interface, and resolves with the port. */
  async listen(): Promise<number> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  /** Closes all connections. The database stays open. */
  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    const reader = new RequestReader();
    socket.on('data', (chunk) => {
      for (const request of reader.push(chunk)) {
        if (request.type === 'encryption') socket.write('N');
        else if (request.type === 'terminate') socket.end();
        else this.jobs.push({ socket, messages: request.messages });
      }
      void this.work();
    });
    // The 'close' event follows, and its listener cleans up.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.jobs = this.jobs.filter((job) => job.socket !== socket);
      if (this.inTransaction !== socket) return;
      this.jobs.unshift({ socket, messages: [ROLLBACK] });
      void this.work();
    });
  }

  private async work(): Promise<void> {
    if (this.working) return;
    this.working = true;
    for (let job = this.take(); job; job = this.take()) {
      const { socket, messages } = job;
      const reply = await this.run(messages).catch((error: unknown) => {
        socket.destroy(error instanceof Error ? error : undefined);
        return undefined;
      });
      if (!reply) continue;
      this.inTransaction = reply.at(-1) === IDLE ? undefined : socket;
      // The connection closed inside its transaction, so the server has to end the transaction.
      if (this.inTransaction?.destroyed) this.jobs.unshift({ socket, messages: [ROLLBACK] });
      else if (socket.writable) socket.write(reply);
    }
    this.working = false;
  }

  /** Returns the next job; while a transaction is open, the next one of its connection. */
  private take(): Job | undefined {
    const owner = this.inTransaction;
    const index = owner ? this.jobs.findIndex((job) => job.socket === owner) : 0;
    return index < 0 ? undefined : this.jobs.splice(index, 1)[0];
  }

  private run(messages: readonly Buffer[]): Promise<Buffer> {
    return this.db.runExclusive(async () => {
      const replies: Uint8Array[] = [];
      for (const message of messages) replies.push(await this.db.execProtocolRaw(message));
      return Buffer.concat(replies);
    });
  }
}

/** A simple query: type, length (including itself), text, zero. */
const ROLLBACK = (() => {
  const text = Buffer.from('ROLLBACK\0');
  const head = Buffer.from('Q\0\0\0\0');
  head.writeInt32BE(text.length + 4, 1);
  return Buffer.concat([head, text]);
})();
