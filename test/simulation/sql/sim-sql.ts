import type { Statement } from '../../../lib/stores/sql/sql.js';
import type { ServerSession, SimDatabase, SimWork, StatementName } from './sim-database.js';

/** Returns a statement of the simulated dialect. It is executed at once, when no row is locked. */
export const statement = <T>(
  name: StatementName,
  work: (database: SimDatabase, session: ServerSession) => T,
  locks: (database: SimDatabase) => readonly string[] = () => [],
): Statement<T> => {
  const its: SimWork = {
    name,
    locks,
    work: (database, session, reply) => reply(work(database, session)),
  };
  return { sql: { texts: [name], values: [], ...its }, read: (reply) => reply as T };
};

/** Returns a statement that waits in the server. */
export const waiting = <T>(
  name: StatementName,
  work: (database: SimDatabase, session: ServerSession, reply: (value: T) => void) => void,
): Statement<T> => {
  const its: SimWork = { name, locks: () => [], work };
  return { sql: { texts: [name], values: [], ...its }, read: (reply) => reply as T };
};

/** Returns what the database does for a statement, also for the LISTEN of `PostgresListener`. */
export const workOf = ({ sql }: Pick<Statement<unknown>, 'sql'>): SimWork => {
  if ('work' in sql) return sql as typeof sql & SimWork;
  const channels = [...sql.texts.join().matchAll(/LISTEN "([^"]+)"/g)].map(([, channel]) => channel!);
  return {
    name: 'wake-up',
    locks: () => [],
    work: ({ listening }, session, reply) => {
      listening.set(session, new Set(channels));
      reply({ rows: [] });
    },
  };
};
