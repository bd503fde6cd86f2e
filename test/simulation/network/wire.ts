import type { Agenda, Appointment } from '../engine/agenda.js';

/** What a wire is laid in: it says when something sent now arrives; Infinity: never. */
export interface Medium {
  arrival(): number;
}

interface Parcel {
  appointment: Appointment;
  readonly sentAt: number;
  readonly deliver: (() => void)[];
}

/** One direction of a connection: what is sent arrives in order, later, or not at all. */
export class Wire {
  private readonly underWay = new Set<Parcel>();
  private lastAt = 0;
  private last: Parcel | undefined;
  private severed = false;
  /** Nothing sent before this moment arrives before it; Infinity swallows all from now on. */
  private silentUntil = 0;

  constructor(
    private readonly agenda: Agenda,
    private readonly medium: Medium,
    /** Whether what arrives can settle no promise. */
    private readonly quiet: boolean,
    /** Whether everything that is sent at one moment arrives at one moment, too. */
    private readonly gathers: boolean,
  ) {}

  send(deliver: () => void): void {
    if (this.severed) return;
    const { last } = this;
    if (this.gathers && last?.sentAt === this.agenda.now && this.underWay.has(last)) {
      last.deliver.push(deliver);
      return;
    }
    this.lastAt = Math.max(this.lastAt, this.medium.arrival(), this.silentUntil);
    if (this.lastAt < Infinity) this.last = this.post([deliver], this.lastAt);
  }

  silence(until: number): void {
    this.silentUntil = Math.max(this.silentUntil, until);
  }

  /** The end. What is under way is lost, or with `lateMs` arrives that much later. Returns when the last of it does. */
  sever(lateMs?: number): number {
    this.severed = true;
    const parcels = [...this.underWay];
    this.underWay.clear();
    let last = this.agenda.now;
    for (const { appointment, deliver } of parcels) {
      appointment.cancelled = true;
      if (lateMs === undefined) continue;
      last = Math.max(last, appointment.at + lateMs);
      this.post(deliver, appointment.at + lateMs);
    }
    return last;
  }

  private post(deliver: (() => void)[], at: number): Parcel {
    const arrive = (): void => {
      this.underWay.delete(parcel);
      for (const one of deliver) one();
    };
    const appointment = this.quiet ? this.agenda.quietly(at, arrive) : this.agenda.at(at, arrive);
    const parcel: Parcel = { sentAt: this.agenda.now, deliver, appointment };
    this.underWay.add(parcel);
    return parcel;
  }
}
