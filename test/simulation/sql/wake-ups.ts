import type { Watch, WatchListener } from '../../../lib/core/seam/lock-store.js';
import type { MysqlBell } from '../../../lib/stores/mysql/mysql-bell.js';
import type { PostgresListener } from '../../../lib/stores/postgres/postgres-listener.js';
import type { PostgresSession } from '../../../lib/stores/postgres/postgres-session.js';
import type { raw } from '../../../lib/stores/sql/sql.js';
import type { SimLink } from './sim-link.js';
import { statement } from './sim-sql.js';
import type { SqlMode } from './sql-plan.js';

/** The classes of the library that wake waiters; a copy with a mistake has its own. */
export interface WakeUpParts {
  readonly MysqlBell: typeof MysqlBell;
  readonly PostgresListener: typeof PostgresListener;
  readonly raw: typeof raw;
}

/** How releases wake the waiters of a process: the real bell or the real listener, over simulated connections. */
export interface SimWakeUps {
  watch(finalKey: string, listener: WatchListener): Watch | undefined;
  /** A poll saw that a process with this bell holds the key. */
  seen(finalKey: string, bell: string): void;
  /** A release has left waiters. */
  ring(): void;
  close(): void;
}

const NOTHING = {
  watch: (): undefined => undefined,
  seen: (): void => undefined,
  ring: (): void => undefined,
  close: (): void => undefined,
} satisfies SimWakeUps;

const bellOf = (link: SimLink, me: string, { MysqlBell, raw }: WakeUpParts): SimWakeUps => {
  const names = {
    table: raw('locks'),
    me: Buffer.from(me),
    bell: Buffer.from(bellNameOf(me)),
    maxQueue: 1_000,
  };
  return new MysqlBell(names, { runtime: link.process, connect: () => link.connect() });
};

const listenerOf = (link: SimLink, timeoutMs: number, { PostgresListener }: WakeUpParts): SimWakeUps => {
  const listener = new PostgresListener({
    runtime: link.process,
    timeoutMs,
    channel: 'locks',
    // It uses nothing else of a session than the simulated one has.
    connect: () => link.connect() as Promise<unknown> as Promise<PostgresSession>,
    notify: async (payload) => {
      const session = await link.connect();
      try {
        await session.send(statement('wake-up', (database) => database.notify(payload)));
      } finally {
        session.destroy();
      }
    },
    warn: () => undefined,
  });
  return { ...NOTHING, watch: (key, its) => listener.watch(key, its), close: () => listener.close() };
};

/** Returns the name of a process's bell. */
export const bellNameOf = (me: string): string => `bell of ${me}`;

export const wakeUpsOf = (
  link: SimLink,
  me: string,
  { mode, pooled, timeoutMs }: { mode: SqlMode; pooled: boolean; timeoutMs: number },
  parts: WakeUpParts,
): SimWakeUps => {
  if (mode === 'notifications') return pooled ? NOTHING : listenerOf(link, timeoutMs, parts);
  return pooled ? NOTHING : bellOf(link, me, parts);
};
