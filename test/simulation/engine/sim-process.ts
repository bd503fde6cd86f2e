import type { EventOf, EventType } from '../../checker/history.js';
import type { Runtime } from '../../../lib/core/util/runtime.js';
import type { Agenda, Appointment } from './agenda.js';
import type { Chronicle } from './chronicle.js';
import { Random } from './random.js';

/** An event of this process; when and where are added. */
type Own<T extends EventType> = T extends EventType ? Omit<EventOf<T>, 'at' | 'process'> : never;
type OwnEvent = Own<Extract<EventType, EventOf<EventType>['type']>>;

interface Job {
  readonly rank: number;
  readonly due: number;
  readonly action: () => void;
  /** The connection it has come on. */
  readonly from?: object;
}

/** In the order in which Node looks at them: timers, then what has arrived, then immediates. */
const TIMER = 0;
const ARRIVAL = 1;
const IMMEDIATE = 2;

/** A process's clocks show this at the beginning, in ms: nobody's zero is anybody else's. */
const CLOCK_START = 5_000;
/** Timers of Node fire a little late, and seen from a finer clock also a little early, in ms. */
const EARLIEST_MS = -0.9;
const LATEST_MS = 1.2;

/**
 * A process: its clock, its timers, its ids, and whether it runs at all. It can stand still (stopped, or its event
 * loop blocked) and crash, also in the middle of its own code: each use of the clock, of a timer or of the network is
 * a step, and something may be planned for a step. While it stands still its code has, seen from outside, not gone
 * on: what it does takes effect when it runs again, and nothing reaches it before.
 */
export class SimProcess implements Runtime {
  crashedAt = Infinity;
  /** Set when it was asked to shut down. */
  stopping = false;
  /** How much the wall clock was set forward or back. */
  wallSkewMs = 0;
  /** What is to happen at which step. */
  readonly interruptions = new Map<number, () => void>();
  /** Called before the process stops, for whoever wants to know what it thinks at that moment. */
  onFreeze: () => void = () => undefined;
  /** Something ran since the last time somebody looked. */
  touched = false;
  /** Where the library takes chance from. */
  dice = new Random(`dice of ${this.name}`);
  private busyUntil = 0;
  private steps = 0;
  private ids = 0;
  private readonly timers = new Set<Appointment>();
  private readonly backlog: Job[] = [];
  private waking = false;

  constructor(
    readonly name: string,
    private readonly agenda: Agenda,
    private readonly chronicle: Chronicle,
    private readonly timing: Random,
    /** How fast its clock runs. */
    private readonly rate: number,
    /** A deliberate mistake: leases measured with the wall clock. */
    private readonly usesWallClock: boolean,
  ) {}

  get crashed(): boolean {
    return this.crashedAt < Infinity;
  }

  /** The moment the process's code is at. */
  get at(): number {
    return Math.max(this.agenda.now, this.busyUntil);
  }

  /** When a moment on the process's clock is. */
  momentOf(local: number): number {
    return (local - CLOCK_START - this.skewMs) / this.rate;
  }

  /** How many steps it has made. */
  get stepsMade(): number {
    return this.steps;
  }

  get timersLeft(): number {
    return this.timers.size;
  }

  now(): number {
    this.step();
    return CLOCK_START + this.at * this.rate + this.skewMs;
  }

  setTimer(action: () => void, ms: number): unknown {
    const wanted = Math.max(1, Math.trunc(ms)) / this.rate + this.timing.between(EARLIEST_MS, LATEST_MS);
    const timer = this.agenda.at(this.at + Math.max(0.05, wanted), () => {
      this.receive(TIMER, () => {
        if (!this.timers.delete(timer)) return;
        action();
      });
    });
    this.timers.add(timer);
    // Not before: between a look at the clock and the timer set by it there is hardly a moment in which to stop.
    this.step();
    return timer;
  }

  clearTimer(timer: unknown): void {
    const appointment = timer as Appointment | undefined;
    if (!appointment) return;
    appointment.cancelled = true;
    this.timers.delete(appointment);
  }

  soon(action: () => void): void {
    this.afterArrivals(action);
  }

  /** Beginning of all ids of this process, with or without their hyphens. */
  get idPrefix(): string {
    return Buffer.from(this.name).toString('hex').padStart(8, '0');
  }

  /** As in earnest, a UUID of version 8: stores and servers look at its form. */
  newId(): string {
    const number = (++this.ids).toString(16);
    return `${this.idPrefix}-${number.slice(-4).padStart(4, '0')}-8000-8000-${number.padStart(12, '0')}`;
  }

  random(): number {
    return this.dice.next();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.setTimer(resolve, ms));
  }

  /** Something from outside has arrived. It waits while the process stands still. */
  arrive(action: () => void, from?: object): void {
    this.receive(ARRIVAL, action, from);
  }

  /** Runs `action` after all that lies waiting, like `setImmediate`. */
  afterArrivals(action: () => void): void {
    this.backlog.push({ rank: IMMEDIATE, due: this.at, action });
    this.wakeAt(this.at);
  }

  /** Something the process does to the world. It takes effect when its code really gets there, if ever. */
  effect(action: () => void): void {
    this.step();
    if (this.crashed) return;
    const { at } = this;
    if (at <= this.agenda.now) return action();
    this.agenda.quietly(at, () => {
      if (this.crashedAt > at) action();
    });
  }

  record(event: OwnEvent): void {
    if (!this.crashed) this.chronicle.add({ ...event, at: this.at, process: this.name } as never);
  }

  freeze(ms: number): void {
    if (this.crashed) return;
    const { touched } = this;
    this.onFreeze();
    this.touched = touched;
    const from = this.at;
    this.busyUntil = from + ms;
    this.record({ type: 'note', text: `stops for ${Math.round(ms)} ms` });
    this.chronicle.add({ type: 'frozen', at: from, process: this.name, until: this.busyUntil });
  }

  crash(at = this.at): void {
    if (this.crashed) return;
    this.chronicle.add({ type: 'gone', at, process: this.name, how: 'crashed' });
    this.crashedAt = at;
    this.backlog.length = 0;
    for (const timer of this.timers) timer.cancelled = true;
    this.timers.clear();
  }

  private get skewMs(): number {
    return this.usesWallClock ? this.wallSkewMs : 0;
  }

  private step(): void {
    if (this.crashed) return;
    const interruption = this.interruptions.get(++this.steps);
    if (interruption) interruption();
  }

  private receive(rank: number, action: () => void, from?: object): void {
    if (this.crashed) return;
    const { now } = this.agenda;
    if (now >= this.busyUntil && this.backlog.length === 0) return this.run(action);
    this.backlog.push({ rank, due: now, action, from });
    this.wakeAt(this.at);
  }

  private run(action: () => void): void {
    this.touched = true;
    action();
  }

  private wakeAt(at: number): void {
    if (this.waking) return;
    this.waking = true;
    this.agenda.at(at, () => {
      this.waking = false;
      this.wake();
    });
  }

  /** Does one of the things that lie waiting; what came on one connection meanwhile is read in one go. */
  private wake(): void {
    if (this.crashed || this.backlog.length === 0) return;
    if (this.agenda.now >= this.busyUntil) {
      let first = 0;
      this.backlog.forEach((job, i) => {
        if (job.rank < this.backlog[first]!.rank) first = i;
      });
      const [job] = this.backlog.splice(first, 1);
      this.run(job!.action);
      while (job!.from && this.backlog[first]?.from === job!.from && this.timing.chance(0.8)) {
        this.run(this.backlog.splice(first, 1)[0]!.action);
      }
    }
    if (this.backlog.length > 0) this.wakeAt(this.at);
  }
}
