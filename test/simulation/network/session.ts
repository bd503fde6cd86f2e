import type { Agenda } from '../engine/agenda.js';
import type { SimProcess } from '../engine/sim-process.js';
import type { Command, Reply } from '../server/command.js';
import { Wire, type Medium } from './wire.js';

/** What a session talks to. */
export interface Host {
  /** `sentAt`: when the command was sent. */
  receive(
    session: Session,
    command: Command,
    sentAt: number,
    reply: (replies: readonly Reply[]) => void,
  ): void;
  closed(session: Session): void;
}

/** One life of a connection. Both ends have their own idea of whether it lives. */
export class Session {
  /** What the server believes. */
  openThere = true;
  /** What the server sends by itself arrives here. */
  onMessage: (channel: string, text: string) => void = () => undefined;
  /** Called when the client first uses a session of which it does not know that nothing gets through. */
  onVainUse: (() => void) | undefined;
  /** The client is told once that the connection is gone; not when it has hung up itself. */
  onClose: () => void = () => undefined;
  /** Whether the client believes in it. */
  openHere = true;
  private readonly up: Wire;
  private readonly down: Wire;

  constructor(
    /** How the server names it. */
    readonly id: number,
    private readonly agenda: Agenda,
    /** Whose it is. */
    readonly process: SimProcess,
    private readonly host: Host,
    media: { readonly up: Medium; readonly down: Medium },
    gathers: boolean,
  ) {
    this.up = new Wire(agenda, media.up, true, gathers);
    this.down = new Wire(agenda, media.down, false, gathers);
  }

  /** The client sends a command. */
  request(command: Command, onReplies: (replies: readonly Reply[]) => void): void {
    this.process.effect(() => {
      const sentAt = this.agenda.now;
      const { onVainUse } = this;
      this.onVainUse = undefined;
      onVainUse?.();
      this.up.send(() => {
        if (!this.openThere) return;
        this.host.receive(this, command, sentAt, (replies) => this.toClient(() => onReplies(replies)));
      });
    });
  }

  /** The server sends a message by itself. */
  push(channel: string, text: string): void {
    this.toClient(() => this.onMessage(channel, text));
  }

  /** The client hangs up: the server hears of it after all that was sent before. */
  hangUp(): void {
    this.openHere = false;
    this.process.effect(() =>
      this.up.send(() => {
        this.endThere();
      }),
    );
  }

  /** The server closes the connection. What it has received is executed, what is under way is not. */
  endByServer(): void {
    if (!this.openThere) return;
    this.endThere();
    this.down.send(() => this.process.arrive(() => this.closeHere()));
  }

  /** The connection breaks, and both hear of it; the server, with `lateMs`, after the last bytes under way. */
  cut(lateMs?: number): void {
    const last = this.up.sever(lateMs);
    this.down.sever();
    if (lateMs === undefined) this.endThere();
    else this.agenda.quietly(last + lateMs, () => this.endThere());
    this.agenda.at(this.agenda.now + 0.5, () => this.process.arrive(() => this.closeHere()));
  }

  /** The connection lives, but nothing gets through in these directions before `until`; neither side hears of it. */
  silence(direction: 'up' | 'down' | 'both', until: number): void {
    if (direction !== 'down') this.up.silence(until);
    if (direction !== 'up') this.down.silence(until);
  }

  private toClient(action: () => void): void {
    if (!this.openThere) return;
    this.down.send(() =>
      this.process.arrive(() => {
        if (this.openHere) action();
      }, this),
    );
  }

  private closeHere(): void {
    if (!this.openHere) return;
    this.openHere = false;
    this.onClose();
  }

  private endThere(): void {
    if (!this.openThere) return;
    this.openThere = false;
    this.host.closed(this);
  }
}
