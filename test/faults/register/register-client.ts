import { connect, type Socket } from 'node:net';
import { lineReader, type RegisterReply, type RegisterRequest } from './protocol.js';

/** A worker's connection to the register. */
export class RegisterClient {
  private readonly socket: Socket;
  private readonly waiting = new Map<number, (reply: RegisterReply) => void>();
  private requests = 0;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    // The register lives as long as the laboratory; when it goes, so does everything else.
    this.socket.on('error', () => this.socket.destroy());
    this.socket.on(
      'data',
      lineReader((line) => {
        const reply = JSON.parse(line) as RegisterReply;
        this.waiting.get(reply.id)?.(reply);
        this.waiting.delete(reply.id);
      }),
    );
  }

  send(request: Omit<RegisterRequest, 'id'>): Promise<RegisterReply> {
    const id = ++this.requests;
    this.socket.write(`${JSON.stringify({ id, ...request })}\n`);
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  close(): void {
    this.socket.destroy();
  }
}
