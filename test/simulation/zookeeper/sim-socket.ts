import { EventEmitter } from 'node:events';
import type { Agenda } from '../engine/agenda.js';
import type { SimProcess } from '../engine/sim-process.js';
import { Wire } from '../network/wire.js';
import { messageNameOf, type MessageName } from './protocol.js';
import { ServerConnection } from './server-connection.js';
import type { SimServer } from './sim-server.js';

/** What a socket needs of all connections of its process. */
export interface SocketLink {
  readonly process: SimProcess;
  readonly agenda: Agenda;
  losesRequest(name: MessageName): boolean;
  losesReply(name: MessageName): boolean;
  /** A message of this connection got lost. */
  lose(socket: SimSocket): void;
  forget(socket: SimSocket): void;
  /** A server replies to a sync. */
  beats(server: SimServer): void;
  saw(what: string): void;
  chunksOf(bytes: Buffer): readonly Buffer[];
  /** When something that is sent now arrives. */
  arrivesAt(): number;
}

/** What the client uses of a socket, over a simulated network. */
export class SimSocket extends EventEmitter {
  /** Whether nothing gets through any more, in both directions, and neither end notices. */
  private isMute = false;
  private isOver = false;
  private isBroken = false;
  private hasWritten = false;
  private server: ServerConnection | undefined;
  private readonly up: Wire;
  private readonly down: Wire;
  /** Numbers of requests whose replies get lost. */
  private readonly lost = new Map<number, MessageName>();
  /** Syncs without a reply. */
  private readonly beats = new Set<number>();
  private losesWelcome = false;
  private isWelcome = false;

  constructor(
    private readonly link: SocketLink,
    private readonly to: SimServer,
  ) {
    super();
    const { agenda, process } = link;
    const medium = { arrival: () => link.arrivesAt() };
    this.up = new Wire(agenda, medium, true, false);
    this.down = new Wire(agenda, medium, false, false);
    process.effect(() => this.up.send(() => this.arrived()));
  }

  setNoDelay(): this {
    return this;
  }

  write(bytes: Buffer): boolean {
    const name = messageNameOf(bytes, !this.hasWritten);
    this.hasWritten = true;
    this.link.process.effect(() => this.sent(bytes, name));
    return true;
  }

  destroy(): void {
    if (this.isOver) return;
    this.link.process.effect(() => {
      if (!this.isMute) this.up.send(() => this.server?.gone());
    });
    this.end();
  }

  /** The connection breaks, and the client notices it. What was on its way to the server arrives later, or never. */
  break(lateMs: number | undefined): void {
    if (this.isOver || this.isBroken) return;
    this.isBroken = true;
    const { agenda, process } = this.link;
    this.down.sever();
    const lastAt = this.up.sever(lateMs);
    agenda.quietly(lastAt + 1, () => this.server?.gone());
    // Not in the middle of the code that writes just now.
    agenda.at(agenda.now, () => process.arrive(() => this.failed('read ECONNRESET'), this));
  }

  mute(): void {
    this.isMute = true;
  }

  /** Both ends notice at last that the connection is dead. */
  heal(): void {
    if (this.isMute) this.break(undefined);
  }

  /** Its process has crashed. */
  crashed(): void {
    if (!this.isMute) this.up.send(() => this.server?.gone());
  }

  /** The first thing that arrives at the server: the request for a connection. */
  private arrived(): void {
    if (this.isMute) return;
    if (!this.to.accepts) {
      this.link.saw('a connection is refused');
      this.down.send(() => this.link.process.arrive(() => this.failed('connect ECONNREFUSED'), this));
      return;
    }
    this.server = new ServerConnection(this.to, {
      receive: (bytes) => this.replied(bytes),
      closed: () => {
        if (!this.isMute) this.down.send(() => this.arrive(() => this.end()));
      },
    });
  }

  private sent(bytes: Buffer, name: MessageName): void {
    if (this.isMute || this.isBroken) return;
    const { link } = this;
    if (link.losesReply(name)) {
      if (name === 'hello') this.losesWelcome = true;
      else this.lost.set(bytes.readInt32BE(4), name);
    }
    if (name === 'sync') this.beats.add(bytes.readInt32BE(4));
    const isLost = link.losesRequest(name);
    // TCP gives up the whole stream, not one message.
    if (isLost) return link.lose(this);
    for (const chunk of link.chunksOf(bytes)) this.up.send(() => this.isMute || this.server?.receive(chunk));
  }

  private replied(bytes: Buffer): void {
    if (this.isMute || this.isBroken) return;
    const isWelcome = !this.isWelcome;
    this.isWelcome = true;
    if (isWelcome ? this.losesWelcome : this.lost.has(bytes.readInt32BE(4))) return this.link.lose(this);
    if (!isWelcome && this.beats.delete(bytes.readInt32BE(4))) this.link.beats(this.to);
    for (const chunk of this.link.chunksOf(bytes))
      this.down.send(() => this.arrive(() => void this.emit('data', chunk)));
  }

  private arrive(action: () => void): void {
    if (this.isMute || this.isBroken) return;
    this.link.process.arrive(() => {
      if (!this.isOver) action();
    }, this);
  }

  private failed(message: string): void {
    if (this.isOver) return;
    this.emit('error', new Error(message));
    this.end();
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.link.forget(this);
    queueMicrotask(() => this.emit('close'));
  }
}
