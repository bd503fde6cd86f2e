import type { KeyState, PermitState } from '../../../lib/core/seam/reply.js';
import type { KeyRow, RunStatement, SqlDialect } from '../../../lib/stores/sql/sql-dialect.js';
import type { SqlSession, Statement } from '../../../lib/stores/sql/sql.js';
import type { Agenda } from '../engine/agenda.js';
import type { SimDatabase } from './sim-database.js';
import { SimExclusive, SimPermit, type KindHost } from './sim-kinds.js';
import type { SimLink } from './sim-link.js';
import type { SimSession } from './sim-session.js';
import { statement, waiting } from './sim-sql.js';
import { passOn } from './wake-ups.js';

/** The simulated database, for the real `SqlStore`. */
export class SimDialect implements SqlDialect {
  readonly name = 'the database';
  readonly poll;
  readonly exclusive: SimExclusive;
  readonly permit: SimPermit;
  /** The simulated apps have `holderInfo: false`: notes decide nothing about locks. */
  readonly notes = {
    write: () => statement('other', () => undefined),
    read: () => statement('other', () => new Map<string, string>()),
    remove: () => statement('other', () => undefined),
  };

  constructor(
    private readonly host: KindHost,
    private readonly link: SimLink,
    private readonly agenda: Agenda,
    private readonly pooled: boolean,
    /** How long the server waits for the end of a session, in ms. */
    private readonly endMs: number,
  ) {
    this.poll = pollOf(host);
    this.exclusive = new SimExclusive(host);
    this.permit = new SimPermit(host);
  }

  connect(): Promise<SqlSession> {
    return this.link.connect();
  }

  async settle(failed: SqlSession, run: RunStatement): Promise<boolean> {
    if (this.pooled) return false;
    const { server } = failed as SimSession;
    if (this.host.mode === 'polling') {
      if (!(await run(statement('settle', () => server.isAlive)))) return true;
      await run(statement('settle', (database) => database.end(server))).catch(() => undefined);
    }
    const isOver = await run<boolean>(
      waiting('settle', (database, _session, reply) => this.whenEnded(database, server, reply)),
    );
    if (!isOver) this.host.saw('an undo is not certain');
    return isOver;
  }

  inspect(finalKey: string): Statement<KeyState | null> {
    return statement('other', ({ table }) => table.inspect(finalKey));
  }

  keysFrom(): Statement<readonly KeyRow[]> {
    return statement('other', () => []);
  }

  permits(): Statement<PermitState | null> {
    return statement('other', () => null);
  }

  forceUnlock(): Statement<boolean> {
    return statement('other', () => false);
  }

  leave(finalKey: string): Statement<boolean> {
    const { me, mode } = this.host;
    return statement(
      'leave',
      (database) => {
        const { table } = database;
        const has = table.leave(finalKey, me);
        const isFree = table.rows.has(finalKey) && table.rows.get(finalKey)!.until <= table.now();
        if (has && isFree && mode === 'notifications') passOn(database, finalKey);
        return has;
      },
      () => [finalKey],
    );
  }

  sweep(run: RunStatement): Promise<number> {
    return run(statement('sweep', ({ table }) => table.sweep()));
  }

  ping(): Statement<void> {
    return statement('other', () => undefined);
  }

  checkServer(): Promise<void> {
    return Promise.resolve();
  }

  check(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  migrate(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.host.wakeUps.close();
  }

  /** Ends a session, and replies whether that has happened in time. */
  private whenEnded(
    database: SimDatabase,
    server: SimSession['server'],
    reply: (isOver: boolean) => void,
  ): void {
    if (database.end(server)) return reply(true);
    const until = this.agenda.now + this.endMs;
    const look = (): void => {
      if (!server.isAlive || this.agenda.now >= until) return reply(!server.isAlive);
      this.agenda.at(this.agenda.now + 20, look);
    };
    look();
  }
}

/** How often waiters poll, in ms, as in the real stores. */
export const pollOf = ({ mode }: Pick<KindHost, 'mode'>): SqlDialect['poll'] => ({
  minMs: 5,
  maxMs: 50,
  liveMaxMs: mode === 'notifications' ? 1_000 : 250,
});
