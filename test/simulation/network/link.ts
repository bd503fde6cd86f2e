import type { Agenda } from '../engine/agenda.js';
import type { Random } from '../engine/random.js';
import type { SimProcess } from '../engine/sim-process.js';
import { Session, type Host } from './session.js';

export type Direction = 'up' | 'down' | 'both';

/** A server that accepts connections. */
export interface Server extends Host {
  /** Whether a connection can be made. */
  readonly accepts: boolean;
  nextSessionId(): number;
  opened(session: Session): void;
}

/** The way from one process to the server, for one of its two connections. */
export class Link {
  /** The session the client has at the moment, or had last. */
  session: Session | undefined;
  private slowUntil = 0;
  private extraMs = 0;
  private readonly silentUntil = { up: 0, down: 0 };

  constructor(
    private readonly agenda: Agenda,
    private readonly process: SimProcess,
    private readonly server: Server,
    private readonly random: Random,
    private readonly latencyMs: readonly [number, number],
    /** How long the client tries to connect. */
    private readonly timeoutMs: number,
  ) {}

  /** Tries to connect, and tells the client how that went. */
  connect(done: (session: Session | undefined) => void): void {
    this.process.effect(() => {
      const { now } = this.agenda;
      const silent = Math.max(this.silentUntil.up, this.silentUntil.down) > now;
      const at = silent ? now + this.timeoutMs : now + this.latency() + this.latency();
      this.agenda.at(at, () => {
        if (this.process.crashed) return;
        const session = silent || !this.server.accepts ? undefined : this.open();
        this.process.arrive(() => done(session));
      });
    });
  }

  slow(extraMs: number, until: number): void {
    this.extraMs = extraMs;
    this.slowUntil = until;
  }

  /** Nothing gets through before `until`, in sessions that are and in those to come. */
  silence(direction: Direction, until: number): void {
    if (direction !== 'down') this.silentUntil.up = until;
    if (direction !== 'up') this.silentUntil.down = until;
  }

  private open(): Session {
    const arrival = (direction: 'up' | 'down') => ({
      arrival: () => Math.max(this.agenda.now, this.silentUntil[direction]) + this.latency(),
    });
    const media = { up: arrival('up'), down: arrival('down') };
    // Packets of a tick may arrive one by one, or all in one piece.
    const gathers = this.random.chance(0.8);
    const { agenda, process, server } = this;
    this.session = new Session(server.nextSessionId(), agenda, process, server, media, gathers);
    this.server.opened(this.session);
    return this.session;
  }

  private latency(): number {
    const slow = this.agenda.now < this.slowUntil ? this.extraMs * this.random.between(0.5, 1) : 0;
    return this.random.between(...this.latencyMs) + slow;
  }
}
