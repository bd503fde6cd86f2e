import type { SqlSession, Statement } from '../../../lib/stores/sql/sql.js';
import type { StoreOutcome } from '../../../lib/core/seam/store-failure.js';
import type { Agenda } from '../engine/agenda.js';
import type { SimProcess } from '../engine/sim-process.js';
import type { Outcome, Refusal, ServerSession, SimDatabase, StatementName } from './sim-database.js';
import { workOf } from './sim-sql.js';

/** What a connection needs of all connections of its process. */
export interface SessionLink {
  readonly process: SimProcess;
  readonly database: SimDatabase;
  readonly agenda: Agenda;
  losesRequest(name: StatementName): boolean;
  losesReply(name: StatementName): boolean;
  /** A message of this connection got lost. */
  lose(session: SimSession): void;
  forget(session: SimSession): void;
  failure(message: string, outcome: StoreOutcome, session?: SimSession): Error;
  refusal(why: Refusal, session: SimSession): Error;
  /** When something that is sent now arrives. */
  arrivesAt(): number;
}

/** The client's end of a connection. */
export class SimSession implements SqlSession {
  isOver = false;
  /** As in `PostgresSession`. */
  onNotification: ((payload: string, channel: string) => void) | undefined;
  onEnd: (() => void) | undefined;
  /** Whether nothing gets through any more, in both directions, and neither end notices. */
  isMute = false;
  /** What was sent arrives so much later, in ms; undefined: never. Set when the connection has broken. */
  lateMs: number | undefined;
  isBroken = false;
  /** Whether it is one of those on which waiters are woken. */
  isForWakeUps = false;
  private lastUpAt = 0;
  private lastDownAt = 0;
  private fail: ((why: string) => void) | undefined;

  constructor(
    private readonly link: SessionLink,
    readonly server: ServerSession,
  ) {
    server.onEnded = () => this.down(() => this.ended('the connection was lost'));
    server.onNotification = (...message) => this.down(() => this.onNotification?.(...message));
  }

  send<T>(statement: Statement<T>): Promise<T> {
    const { link } = this;
    return new Promise<T>((resolve, reject) => {
      if (this.isOver) return reject(link.failure('the connection has ended', 'not-executed'));
      const its = workOf(statement);
      this.isForWakeUps ||= its.name === 'wake-up';
      const isFirst = <A extends unknown[]>(action: (...args: A) => void) => {
        return (...args: A): void => {
          if (this.fail !== fail) return;
          this.fail = undefined;
          action(...args);
        };
      };
      const fail = (why: string): void => isFirst(() => reject(link.failure(why, 'unknown', this)))();
      this.fail = fail;
      const settle = isFirst((outcome: Outcome) => {
        if ('refused' in outcome) return reject(link.refusal(outcome.refused, this));
        try {
          resolve(statement.read(outcome.value));
        } catch (error) {
          reject(error);
        }
      });
      this.up(() => {
        if (link.losesRequest(its.name)) return link.lose(this);
        const isReplyLost = link.losesReply(its.name);
        link.database.execute(this.server, its, (outcome) => {
          if (isReplyLost) return link.lose(this);
          this.down(() => settle(outcome));
        });
      });
    });
  }

  /** Ends the client's end. The server hears of it behind all that was sent. */
  destroy(): void {
    if (this.isOver) return;
    this.up(() => this.link.database.leave(this.server));
    this.ended('the connection was closed');
    this.link.forget(this);
  }

  /** The connection breaks, and the client notices it. */
  break(lateMs: number | undefined): void {
    if (this.isOver) return;
    this.isBroken = true;
    this.lateMs = lateMs;
    const { agenda, process, database } = this.link;
    process.arrive(() => this.ended('the connection was lost'));
    agenda.at(agenda.now + (lateMs ?? 0) + 1, () => database.leave(this.server));
  }

  private ended(why: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.fail?.(why);
    this.onEnd?.();
  }

  /** Something goes to the server, behind what was sent before. */
  private up(action: () => void): void {
    const { link } = this;
    link.process.effect(() => {
      if (this.isMute) return;
      this.lastUpAt = Math.max(this.lastUpAt, link.arrivesAt());
      link.agenda.at(this.lastUpAt, () => {
        if (this.isMute) return;
        if (!this.isBroken) return action();
        if (this.lateMs !== undefined) link.agenda.at(link.agenda.now + this.lateMs, action);
      });
    });
  }

  /** Something goes to the client, behind what was sent before. */
  private down(action: () => void): void {
    const { link } = this;
    if (this.isMute || this.isBroken) return;
    this.lastDownAt = Math.max(this.lastDownAt, link.arrivesAt());
    link.agenda.at(this.lastDownAt, () => {
      if (!this.isMute && !this.isBroken) link.process.arrive(action, this);
    });
  }
}
