import type { StoreOutcome } from '../../../lib/core/seam/store-failure.js';
import type { SqlFailure } from '../../../lib/stores/sql/sql.js';
import type { Agenda } from '../engine/agenda.js';
import type { Random } from '../engine/random.js';
import type { SimProcess } from '../engine/sim-process.js';
import { ServerSession, type Refusal, type SimDatabase, type StatementName } from './sim-database.js';
import { SimSession, type SessionLink } from './sim-session.js';

/** Which message gets lost, and what becomes of its connection. */
export interface Loss {
  readonly of: StatementName;
  /** Whether the client notices that the connection is lost. Otherwise it waits for its time-out. */
  readonly isNoticed: boolean;
}

/** What the connections of a process have in common. */
interface LinkTerms {
  readonly process: SimProcess;
  readonly database: SimDatabase;
  readonly agenda: Agenda;
  readonly random: Random;
  readonly latencyMs: readonly [number, number];
  readonly timeoutMs: number;
  /** That of the library under test: a copy with a mistake has its own. */
  readonly Failure: typeof SqlFailure;
  saw(what: string): void;
}

/** All connections of a process to the database. */
export class SimLink implements SessionLink {
  private readonly sessions = new Set<SimSession>();
  private silentUntil = 0;
  private slowUntil = 0;
  private extraMs = 0;
  private lostRequest: Loss | undefined;
  private lostReply: Loss | undefined;
  private losesWakeUps = false;
  private losing: Loss | undefined;

  readonly process: SimProcess;
  readonly database: SimDatabase;
  readonly agenda: Agenda;

  constructor(private readonly terms: LinkTerms) {
    ({ process: this.process, database: this.database, agenda: this.agenda } = terms);
  }

  connect(): Promise<SimSession> {
    const { process, agenda, database } = this;
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (action: () => void): void => {
        if (isOver) return;
        isOver = true;
        process.clearTimer(timer);
        action();
      };
      const timer = process.setTimer(
        () => end(() => reject(this.failure('no connection in time', 'not-executed'))),
        this.terms.timeoutMs,
      );
      process.effect(() =>
        agenda.at(this.arrivesAt(), () => {
          if (!database.accepts) {
            this.terms.saw('a connection is refused');
            process.arrive(() => end(() => reject(this.failure('connection refused', 'not-executed'))));
            return;
          }
          const server = new ServerSession();
          database.sessions.add(server);
          const session = new SimSession(this, server);
          this.sessions.add(session);
          agenda.at(this.arrivesAt(), () =>
            process.arrive(() => (isOver ? session.destroy() : end(() => resolve(session)))),
          );
        }),
      );
    });
  }

  /** Nothing gets through until then; what was on its way comes after that. */
  silence(until: number): void {
    this.silentUntil = Math.max(this.silentUntil, until);
  }

  slow(extraMs: number, until: number): void {
    this.extraMs = extraMs;
    this.slowUntil = until;
  }

  loseRequest(loss: Loss): void {
    this.lostRequest = loss;
  }

  loseReply(loss: Loss): void {
    this.lostReply = loss;
  }

  /** Connections break: all, or one. */
  cut(isAll: boolean, lateMs: number | undefined): void {
    const open = [...this.sessions];
    for (const session of isAll ? open : open.slice(this.terms.random.whole(0, open.length))) {
      session.break(lateMs);
      this.sessions.delete(session);
    }
  }

  /** Nothing gets through any more on the connections that are open, and neither end notices. */
  mute(): void {
    for (const session of this.sessions) session.isMute = true;
  }

  /** From now on wake-ups get lost, and nothing else does. */
  muteWakeUps(): void {
    this.losesWakeUps = true;
    for (const session of this.sessions) if (session.isForWakeUps) session.isMute = true;
  }

  /** The process has crashed: its machine closes the connections. */
  crashed(): void {
    for (const session of this.sessions)
      this.agenda.at(this.arrivesAt(), () => session.isMute || this.database.leave(session.server));
    this.sessions.clear();
  }

  /** No more faults: both ends notice at last which connections are dead. */
  heal(): void {
    for (const session of this.sessions) if (session.isMute) session.break(undefined);
    this.lostRequest = this.lostReply = this.losing = undefined;
  }

  losesRequest(name: StatementName): boolean {
    if (this.losesWakeUps && name === 'wake-up') return true;
    if (this.lostRequest?.of !== name) return false;
    this.losing = this.lostRequest;
    this.lostRequest = undefined;
    this.terms.saw(`lost request: ${name}`);
    return true;
  }

  losesReply(name: StatementName): boolean {
    if (this.lostReply?.of !== name) return false;
    this.losing = this.lostReply;
    this.lostReply = undefined;
    this.terms.saw(`lost reply: ${name}`);
    return true;
  }

  /** A message of this connection got lost. */
  lose(session: SimSession): void {
    if (this.losing?.isNoticed) session.break(undefined);
    else session.isMute = true;
  }

  forget(session: SimSession): void {
    this.sessions.delete(session);
  }

  failure(message: string, outcome: StoreOutcome, session?: SimSession): SqlFailure {
    return new this.terms.Failure(message, outcome, { passing: true }, session);
  }

  /** The server replied that it did not execute the statement. */
  refusal(why: Refusal, session: SimSession): SqlFailure {
    return new this.terms.Failure(
      why,
      'not-executed',
      { transient: why === 'row locked', passing: true },
      session,
    );
  }

  /** When something that is sent now arrives. */
  arrivesAt(): number {
    const { agenda } = this;
    const { random, latencyMs } = this.terms;
    const slow = agenda.now < this.slowUntil ? this.extraMs * random.between(0.5, 1) : 0;
    return Math.max(agenda.now, this.silentUntil) + random.between(...latencyMs) + slow;
  }
}
