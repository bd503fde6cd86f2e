import type { Agenda } from '../engine/agenda.js';
import type { Random } from '../engine/random.js';
import { NamedLocks } from './named-locks.js';
import { SimPermits } from './sim-permits.js';
import { SimTable } from './sim-table.js';

/** 2026, so that tokens look like tokens. */
const WALL_CLOCK_START_MS = 1_790_000_000_000;

/** What a statement is for: faults choose by it. */
export type StatementName =
  'acquire' | 'release' | 'extend' | 'peek' | 'leave' | 'settle' | 'sweep' | 'wake-up' | 'other';

/** A statement as the simulated database executes it. */
export interface SimWork {
  readonly name: StatementName;
  /** Returns the keys whose rows it locks. */
  locks(database: SimDatabase): readonly string[];
  /** Calls `reply` when it has been executed. */
  work(database: SimDatabase, session: ServerSession, reply: (value: unknown) => void): void;
}

/** Why a statement was not executed. */
export type Refusal = 'row locked' | 'too slow';

export type Outcome = { readonly value: unknown } | { readonly refused: Refusal };

/** How the server treats statements. Times in ms. */
export interface ServerRules {
  readonly lockWaitMs: number;
  /** After this the server gives a statement up. */
  readonly statementMs: number;
  /** How long it works at a statement; it works at one at a time. Default: 0. */
  readonly serviceMs?: number;
}

/** A statement that the server has begun. */
interface Running {
  readonly execute: () => void;
  isOver: boolean;
}

/** A connection in the server. */
export class ServerSession {
  isAlive = true;
  /** Whether the client has gone. The server notices it after the statement under way. */
  isLeft = false;
  /** Whether it ends only after the statement under way. */
  isStubborn = false;
  running: Running | undefined;
  /** Tells the client that the server has ended the connection. */
  onEnded: () => void = () => undefined;
  onNotification: (payload: string, channel: string) => void = () => undefined;
}

/** The database of all processes. Its data outlive a restart. */
export class SimDatabase {
  readonly table = new SimTable(() => this.now());
  readonly permits = new SimPermits(this.table);
  readonly named: NamedLocks;
  /** Channels to which sessions listen. */
  readonly listening = new Map<ServerSession, ReadonlySet<string>>();
  readonly sessions = new Set<ServerSession>();
  isUp = true;
  refusesUntil = 0;
  /** How many statements reached the database. */
  requests = 0;
  private aheadMs = 0;
  private readonly rowLocks = new Map<string, number>();
  private slow: { name: StatementName; ms: number } | undefined;
  private stubborn = 0;
  private busyUntil = 0;

  constructor(
    private readonly agenda: Agenda,
    private readonly random: Random,
    private readonly rate: number,
    private readonly rules: ServerRules,
    /** Counts what happens. */
    private readonly saw: (what: string) => void,
  ) {
    this.named = new NamedLocks(agenda);
  }

  get accepts(): boolean {
    return this.isUp && this.agenda.now >= this.refusesUntil;
  }

  /** Steps the clock. */
  stepClock(ms: number): void {
    this.aheadMs += ms;
  }

  /** A transaction of others locks a row. */
  lockRow(key: string, until: number): void {
    this.rowLocks.set(key, Math.max(until, this.rowLocks.get(key) ?? 0));
  }

  isLocked(key: string): boolean {
    return this.lockedUntil([key]) > this.agenda.now;
  }

  /** The next statement of this name takes some time until it is executed. */
  delayNext(name: StatementName, ms: number): void {
    this.slow = { name, ms };
  }

  /** The next `count` statements that are to be ended commit instead. */
  refuseKills(count: number): void {
    this.stubborn = count;
  }

  /** No more faults. */
  heal(): void {
    this.slow = undefined;
    this.stubborn = 0;
  }

  /** Ends all sessions. A statement under way is executed or not. */
  die(): void {
    if (!this.isUp) return;
    this.isUp = false;
    for (const session of [...this.sessions]) {
      const { running } = session;
      if (running && this.random.chance(0.5)) {
        this.saw('a restart commits a statement without a reply');
        running.execute();
      }
      this.forget(session);
      session.onEnded();
    }
  }

  /** Executes a statement of a session, once its rows are free. */
  execute(session: ServerSession, its: SimWork, reply: (outcome: Outcome) => void): void {
    this.requests += 1;
    if (!session.isAlive) return this.saw('a statement comes after the end of its session');
    const running: Running = {
      isOver: false,
      execute: () => {
        running.isOver = true;
        if (session.isLeft && its.name === 'acquire')
          this.saw('a statement commits after its client has gone');
        its.work(this, session, (value) => this.ended(session, running, () => reply({ value })));
      },
    };
    session.running = running;
    const refuse = (refused: Refusal): void => {
      running.isOver = true;
      this.saw(refused);
      this.ended(session, running, () => reply({ refused }));
    };
    const { serviceMs = 0 } = this.rules;
    if (serviceMs === 0) return this.whenFree(its, running, refuse);
    this.busyUntil = Math.max(this.agenda.now, this.busyUntil) + serviceMs;
    this.agenda.at(this.busyUntil, () => this.whenFree(its, running, refuse));
  }

  /** Ends a session. Returns true when nothing of it comes any more. */
  end(session: ServerSession): boolean {
    if (!session.isAlive) return true;
    const { running } = session;
    const isBusy = running !== undefined && !running.isOver;
    if (isBusy && session.isStubborn) return false;
    if (isBusy && this.stubborn > 0) {
      this.stubborn -= 1;
      session.isStubborn = true;
      session.isLeft = true;
      this.saw('a session does not end at once');
      return false;
    }
    if (isBusy) this.saw('a session is ended with a statement under way');
    this.forget(session);
    session.onEnded();
    return true;
  }

  /** The client has closed the connection. */
  leave(session: ServerSession): void {
    session.isLeft = true;
    if (!session.running) this.forget(session);
  }

  notify(payload: string, to: string): void {
    for (const [session, channels] of this.listening)
      if (channels.has(to)) session.onNotification(payload, to);
  }

  private now(): number {
    return Math.floor((WALL_CLOCK_START_MS + this.agenda.now * this.rate + this.aheadMs) * 1_000);
  }

  private whenFree(its: SimWork, running: Running, refuse: (why: Refusal) => void): void {
    const { agenda, rules } = this;
    const begunAt = agenda.now;
    let untilAt = begunAt;
    if (this.slow?.name === its.name) {
      untilAt += this.slow.ms;
      this.slow = undefined;
    }
    const step = (): void => {
      if (running.isOver) return;
      const { now } = agenda;
      if (now < untilAt) return void agenda.at(Math.min(untilAt, begunAt + rules.statementMs), tooSlow);
      const lockedUntil = this.lockedUntil(its.locks(this));
      if (lockedUntil <= now) return running.execute();
      const patience = Math.min(untilAt + rules.lockWaitMs, begunAt + rules.statementMs);
      if (now >= patience) return refuse('row locked');
      agenda.at(Math.min(lockedUntil, patience), step);
    };
    const tooSlow = (): void => {
      if (running.isOver) return;
      if (agenda.now < untilAt) refuse('too slow');
      else step();
    };
    step();
  }

  private ended(session: ServerSession, running: Running, reply: () => void): void {
    if (session.running !== running || !session.isAlive) return;
    session.running = undefined;
    reply();
    if (session.isLeft) this.forget(session);
  }

  private forget(session: ServerSession): void {
    session.isAlive = false;
    if (session.running) session.running.isOver = true;
    session.running = undefined;
    this.sessions.delete(session);
    this.listening.delete(session);
    this.named.forget(session);
  }

  private lockedUntil(keys: readonly string[]): number {
    return Math.max(0, ...keys.map((key) => this.rowLocks.get(key) ?? 0));
  }
}
