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

/** Returns what the database does for a statement, also for those of `MysqlBell` and `PostgresListener`. */
export const workOf = ({ sql }: Pick<Statement<unknown>, 'sql'>): SimWork => {
  if ('work' in sql) return sql as typeof sql & SimWork;
  const [text = ''] = sql.texts;
  const its = { name: 'wake-up' as const, locks: () => [] };
  if (text.startsWith('LISTEN'))
    return {
      ...its,
      work: (database, session, reply) => {
        database.listening.add(session);
        reply({ rows: [] });
      },
    };
  const names = sql.values.map(String);
  const number = sql.values.find((value) => typeof value === 'number');
  if (number === undefined) return { ...its, work: ring(names[0]!) };
  return { ...its, work: waitAtBell(names[number]!, names.slice(0, number)) };
};

/** `SELECT RELEASE_LOCK(bell), GET_LOCK(bell, 1)` */
const ring =
  (bell: string): SimWork['work'] =>
  ({ named }, session, reply) => {
    named.release(session, bell);
    named.get(session, bell, 1_000, reply);
  };

/** The statement of `MysqlBell.waiting`. */
const waitAtBell =
  (bell: string, keys: readonly string[]): SimWork['work'] =>
  ({ named, table }, session, reply) => {
    const held = (): { name: Buffer }[] =>
      keys.flatMap((key) => {
        const row = table.rows.get(key);
        return row && row.until > table.now() && row.bell === bell ? [{ name: Buffer.from(key) }] : [];
      });
    const end = (rang: boolean): void => {
      const rows = [[{ rang: rang ? 1 : 0 }], held()];
      named.release(session, bell);
      reply(rows);
    };
    if (held().length === keys.length) named.get(session, bell, 1_000, end);
    else end(false);
  };
