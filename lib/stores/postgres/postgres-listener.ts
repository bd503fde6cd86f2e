import type { Runtime } from '../../core/runtime.js';
import type { Watch, WatchListener } from '../../core/seam/lock-store.js';
import { OWN_PREFIX } from '../key-rule.js';
import type { NoteMessages } from '../sql/sql-dialect.js';
import { bytes, nameTextOf, nothing } from '../sql/sql-terms.js';
import { raw, sql, type Sql } from '../sql/sql.js';
import type { PostgresSession } from './postgres-session.js';
import { rowsOf, type PostgresNames } from './postgres-terms.js';

/** Pauses before the next attempt to listen, in ms: the first one, and the longest. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** Ends the name in a message. No name of a note has it. */
const NAME_END = ' ';

/** Longest payload of a notification, in bytes. */
const MAX_PAYLOAD = 7_999;

/** Listens to releases of a key, or to messages. */
interface NotificationListener extends WatchListener {
  message?(text: string): void;
}

interface ListenerHost {
  readonly runtime: Runtime;
  /** Time in ms within which a notification to oneself has to arrive. */
  readonly timeoutMs: number;
  readonly channel: string;
  /** Opens the connection that listens. */
  connect(): Promise<PostgresSession>;
  /** Sends a notification over another connection, as releases do. */
  readonly notify: (payload: string) => Promise<void>;
  warn(sentence: string): void;
}

/**
 * Hears of releases and of messages, on a connection of its own that is opened with the first listener. Notifications are live once one to
 * itself has arrived: a pooler accepts LISTEN and passes nothing on. Meanwhile the core polls more often.
 */
export class PostgresListener {
  private readonly watched = new Map<string, Set<NotificationListener>>();
  private session: PostgresSession | undefined;
  private isLive = false;
  /** Whether a connection is open, being opened, or will be after a pause. */
  private isBusy = false;
  private retryMs = RETRY_MS;
  private timer: unknown;
  private closed = false;
  private hasWarned = false;

  constructor(private readonly host: ListenerHost) {}

  /** @param finalKey a key, or the row of a note */
  watch(finalKey: string, listener: NotificationListener): Watch {
    const { watched } = this;
    const name = nameTextOf(finalKey);
    const listeners = watched.get(name) ?? new Set();
    watched.set(name, listeners.add(listener));
    if (!this.isBusy && !this.closed) void this.open();
    const isLive = (): boolean => this.isLive && listeners.has(listener);
    return {
      get live() {
        return isLive();
      },
      close: () => {
        listeners.delete(listener);
        if (listeners.size === 0 && watched.get(name) === listeners) watched.delete(name);
      },
    };
  }

  close(): void {
    this.closed = true;
    this.host.runtime.clearTimer(this.timer);
    this.watched.clear();
    this.session?.destroy();
  }

  private async open(): Promise<void> {
    const { host } = this;
    this.isBusy = true;
    try {
      const session = await host.connect();
      this.session = session;
      session.onEnd = () => this.ended(session);
      if (this.closed) return session.destroy();
      await session.send({ sql: listenTo(host.channel), read: rowsOf });
      if (await this.hears(session)) return this.start(session);
      this.warn(NOT_HEARD);
    } catch (failure) {
      this.warn(`PostgresStore cannot listen: ${(failure as Error).message}. ${MEANWHILE}`);
    }
    this.session?.destroy();
    this.openLater();
  }

  /** Warns once until notifications are live. */
  private warn(sentence: string): void {
    if (!this.hasWarned && !this.closed) this.host.warn(sentence);
    this.hasWarned = true;
  }

  /** Resolves with whether a notification from another connection arrives. Rejects when the connection ends before. */
  private async hears(session: PostgresSession): Promise<boolean> {
    const { runtime, timeoutMs, notify } = this.host;
    const proof = `nest-redis-lock:${runtime.newId()}`;
    let timer: unknown;
    const heard = new Promise<boolean>((resolve, reject) => {
      timer = runtime.setTimer(() => resolve(false), timeoutMs, true);
      session.onNotification = (payload) => payload === proof && resolve(true);
      session.onEnd = () => reject(new Error('the connection has ended'));
    });
    heard.catch(() => undefined);
    try {
      await notify(proof);
      return await heard;
    } finally {
      runtime.clearTimer(timer);
    }
  }

  private start(session: PostgresSession): void {
    this.isLive = true;
    this.hasWarned = false;
    this.retryMs = RETRY_MS;
    session.onNotification = (payload) => this.heard(payload);
    session.onEnd = () => this.ended(session);
    if (session.isOver) this.ended(session);
  }

  /** No key begins as the row of a note does, so a message is no release. */
  private heard(payload: string): void {
    if (!payload.startsWith(OWN_PREFIX)) return this.wake(this.watched.get(payload) ?? []);
    const end = payload.indexOf(NAME_END);
    for (const listener of this.watched.get(payload.slice(0, end)) ?? [])
      listener.message?.(payload.slice(end + NAME_END.length));
  }

  private ended(session: PostgresSession): void {
    if (!this.isLive || this.session !== session) return;
    this.isLive = false;
    this.session = undefined;
    this.openLater();
    // A release may have been missed, and from now on the pauses have to be shorter.
    this.wake([...this.watched.values()].flatMap((listeners) => [...listeners]));
  }

  private openLater(): void {
    const { runtime } = this.host;
    if (this.closed) return;
    this.timer = runtime.setTimer(
      () => {
        this.isBusy = false;
        if (this.watched.size > 0) void this.open();
      },
      this.retryMs,
      true,
    );
    this.retryMs = Math.min(2 * this.retryMs, MAX_RETRY_MS);
  }

  private wake(listeners: Iterable<WatchListener>): void {
    for (const listener of [...listeners]) listener.notified();
  }
}

/** Returns messages as notifications on the channel of releases. */
export const messagesOf = (
  listener: PostgresListener,
  { notify }: Pick<PostgresNames, 'notify'>,
): NoteMessages => ({
  listen: (row, message) => {
    const watch = listener.watch(row, { notified: nothing, failed: nothing, message });
    return () => watch.close();
  },
  send: (row, text) => {
    const payload = bytes(`${row}${NAME_END}${text}`);
    if (payload.length > MAX_PAYLOAD) return undefined;
    return { sql: sql`SELECT ${notify(sql`${payload}::text`)}`, read: nothing };
  },
});

const listenTo = (channel: string): Sql => raw(`LISTEN "${channel}"`);

const MEANWHILE = 'Until it can, waiters find out about a release only when they ask.';

const NOT_HEARD =
  'PostgresStore hears no notifications: a pooler does not pass them on, or listenUrl leads to another database. ' +
  `Give listenUrl, an address of the server itself, for the same database. ${MEANWHILE}`;
