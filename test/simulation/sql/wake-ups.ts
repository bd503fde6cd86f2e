import type { Heard, MysqlBell } from '../../../lib/stores/mysql/mysql-bell.js';
import type { PostgresListener } from '../../../lib/stores/postgres/postgres-listener.js';
import type { PostgresSession } from '../../../lib/stores/postgres/postgres-session.js';
import { CHANNEL, FREE, NEXT } from '../../../lib/stores/postgres/postgres-terms.js';
import type { WakeUps } from '../../../lib/stores/sql/places.js';
import type { ServerSession, SimDatabase } from './sim-database.js';
import type { SimLink } from './sim-link.js';
import { statement, waiting } from './sim-sql.js';
import type { SqlMode } from './sql-plan.js';

/** The classes of the library that wake waiters; a copy with a mistake has its own. */
export interface WakeUpParts {
  readonly MysqlBell: typeof MysqlBell;
  readonly PostgresListener: typeof PostgresListener;
}

/** How releases wake the waiters of a process: the real bell or the real listener, over simulated connections. */
export interface SimWakeUps {
  readonly exclusive: WakeUps | undefined;
  /** Permits have no bell. */
  readonly permit: WakeUps | undefined;
  close(): void;
}

/** For how long a statement waits for a bell, in ms. */
const PARKED_MS = 2_000;
/** Channel of all processes. */
const SHARED = 'locks';

const NONE: SimWakeUps = { exclusive: undefined, permit: undefined, close: () => undefined };

const bellOf = (link: SimLink, me: string, { MysqlBell }: WakeUpParts): SimWakeUps => {
  const own = bellNameOf(me);
  const bell = new MysqlBell({
    runtime: link.process,
    connect: () => link.connect(),
    ring: waiting('wake-up', ({ named }, session, reply) => {
      named.release(session, own);
      named.get(session, own, PARKED_MS, () => reply(undefined));
    }),
    wait: (finalKey) =>
      waiting<Heard>('wake-up', (database, session, reply) =>
        waitAtBell(database, session, finalKey, me, reply),
      ),
  });
  return { exclusive: bell, permit: undefined, close: () => bell.close() };
};

/** As `MysqlExclusive.waitForBell`. */
const waitAtBell = (
  { named, table }: SimDatabase,
  session: ServerSession,
  finalKey: string,
  me: string,
  reply: (heard: Heard) => void,
): void => {
  const row = table.rows.get(finalKey);
  const before = row?.queue[row.queue.indexOf(me) - 1];
  const holder = row?.queue.includes(me) && row.until > table.now() ? row.bell : '';
  const bell = before === undefined ? holder : bellNameOf(before);
  const hadOwner = named.has(bell);
  const end = (): void => {
    named.release(session, bell);
    reply({ ...table.peek(finalKey, me), hadOwner });
  };
  if (bell === '') end();
  else named.get(session, bell, PARKED_MS, end);
};

const listenerOf = (
  link: SimLink,
  me: string,
  timeoutMs: number,
  { PostgresListener }: WakeUpParts,
): SimWakeUps => {
  const listener = new PostgresListener({
    runtime: link.process,
    timeoutMs,
    channels: { shared: SHARED, own: channelOf(me) },
    // It uses nothing else of a session than the simulated one has.
    connect: () => link.connect() as Promise<unknown> as Promise<PostgresSession>,
    notify: async (payload, channel) => {
      const session = await link.connect();
      try {
        await session.send(statement('wake-up', (database) => database.notify(payload, channel)));
      } finally {
        session.destroy();
      }
    },
    warn: () => undefined,
  });
  return {
    exclusive: listener.wakeUps(true),
    permit: listener.wakeUps(false),
    close: () => listener.close(),
  };
};

/** Notifies all processes that wait for a key. */
export const notifyAll = (database: SimDatabase, key: string): void => database.notify(key, SHARED);

/** Tells the first process in the wait queue of a key that it is free, and the second one, its heir. */
export const passOn = (database: SimDatabase, key: string): void => {
  const [first, second] = database.table.rows.get(key)?.queue ?? [];
  if (first !== undefined) database.notify(`${FREE}${key}`, channelOf(first));
  if (second !== undefined) database.notify(`${NEXT}${key}`, channelOf(second));
};

const channelOf = (me: string): string => `${CHANNEL}${me}`;

/** Returns the name of a process's bell. */
export const bellNameOf = (me: string): string => `bell of ${me}`;

export const wakeUpsOf = (
  link: SimLink,
  me: string,
  { mode, pooled, timeoutMs }: { mode: SqlMode; pooled: boolean; timeoutMs: number },
  parts: WakeUpParts,
): SimWakeUps => {
  if (pooled) return NONE;
  return mode === 'notifications' ? listenerOf(link, me, timeoutMs, parts) : bellOf(link, me, parts);
};
