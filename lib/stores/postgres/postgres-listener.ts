import type { Runtime } from '../../core/util/runtime.js';
import { OWN_PREFIX } from '../key-rule.js';
import type { NoteMessages } from '../sql/sql-dialect.js';
import { SELDOM_MS, type Places, type WakeUps } from '../sql/places.js';
import { bytes, nothing } from '../sql/sql-terms.js';
import { raw, sql, type Sql } from '../sql/sql.js';
import type { PostgresSession } from './postgres-session.js';
import { FREE, NEXT, type PostgresNames } from './postgres-terms.js';

/** Pauses before the next attempt to listen, in ms: the first one, and the longest. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** Ends the name in a message. No name of a note has it. */
const NAME_END = ' ';

/** Longest payload of a notification, in bytes. */
const MAX_PAYLOAD = 7_999;

interface ListenerHost {
  readonly runtime: Runtime;
  /** Time in ms within which a notification to oneself has to arrive. */
  readonly timeoutMs: number;
  /** Of all processes, and of this one. */
  readonly channels: { readonly shared: string; readonly own: string };
  /** Opens the connection that listens. */
  connect(): Promise<PostgresSession>;
  /** Sends a notification over another connection, as releases do. */
  readonly notify: (payload: string, channel: string) => Promise<void>;
  warn(sentence: string): void;
}

/**
 * Hears of releases and of messages, on a connection of its own that is opened with the first listener. Notifications
 * are live once one to itself has arrived: a pooler accepts LISTEN and passes nothing on. Meanwhile the core polls more
 * often.
 */
export class PostgresListener {
  private readonly messages = new Map<string, Set<(text: string) => void>>();
  /** Places of each kind. */
  private readonly places: Places[] = [];
  /** Places in wait queues with turns. */
  private turns: Places | undefined;
  private session: PostgresSession | undefined;
  private isLive = false;
  /** Whether a connection is open, being opened, or will be after a pause. */
  private isBusy = false;
  private retryMs = RETRY_MS;
  private timer: unknown;
  private closed = false;
  private hasWarned = false;

  constructor(private readonly host: ListenerHost) {}

  /** Returns what wakes the waiters of a kind. */
  wakeUps(hasTurns: boolean): WakeUps {
    return {
      serve: (places) => {
        this.places.push(places);
        if (hasTurns) this.turns = places;
      },
      await: () => this.listen(),
      isLive: () => this.isLive,
      pauseMs: () => SELDOM_MS,
    };
  }

  /** Listens to the messages for the row of a note. */
  onMessage(row: string, listener: (text: string) => void): () => void {
    const { messages } = this;
    const listeners = messages.get(row) ?? new Set();
    messages.set(row, listeners.add(listener));
    this.listen();
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && messages.get(row) === listeners) messages.delete(row);
    };
  }

  close(): void {
    this.closed = true;
    this.host.runtime.clearTimer(this.timer);
    this.messages.clear();
    this.session?.destroy();
  }

  private listen(): void {
    if (!this.isBusy && !this.closed) void this.open();
  }

  private async open(): Promise<void> {
    const { host } = this;
    this.isBusy = true;
    try {
      const session = await host.connect();
      this.session = session;
      session.onEnd = () => this.ended(session);
      if (this.closed) return session.destroy();
      await session.send({ sql: listenTo(host.channels), read: nothing });
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
    const { runtime, timeoutMs, notify, channels } = this.host;
    const proof = `nest-redis-lock:${runtime.newId()}`;
    let timer: unknown;
    const heard = new Promise<boolean>((resolve, reject) => {
      timer = runtime.setTimer(() => resolve(false), timeoutMs, true);
      session.onNotification = (payload) => payload === proof && resolve(true);
      session.onEnd = () => reject(new Error('the connection has ended'));
    });
    heard.catch(() => undefined);
    try {
      await notify(proof, channels.own);
      return await heard;
    } finally {
      runtime.clearTimer(timer);
    }
  }

  private start(session: PostgresSession): void {
    this.isLive = true;
    this.hasWarned = false;
    this.retryMs = RETRY_MS;
    session.onNotification = (payload, channel) => this.heard(payload, channel);
    session.onEnd = () => this.ended(session);
    if (session.isOver) this.ended(session);
  }

  private heard(payload: string, channel: string): void {
    const { places, turns, messages } = this;
    const after = (start: string): string => payload.slice(start.length);
    if (channel === this.host.channels.own) {
      if (payload.startsWith(FREE)) turns?.free(after(FREE));
      else if (payload.startsWith(NEXT)) turns?.next(after(NEXT));
      // No key begins as the row of a note does, so a message is no release.
    } else if (payload.startsWith(OWN_PREFIX)) {
      const row = payload.slice(0, payload.indexOf(NAME_END));
      for (const listener of messages.get(row) ?? []) listener(after(row + NAME_END));
    } else for (const ofKind of places) ofKind.wake([ofKind.of(payload)]);
  }

  private ended(session: PostgresSession): void {
    if (!this.isLive || this.session !== session) return;
    this.isLive = false;
    this.session = undefined;
    this.openLater();
    // A release may have been missed, and from now on the pauses have to be shorter.
    for (const ofKind of this.places) ofKind.wake();
  }

  private openLater(): void {
    const { runtime } = this.host;
    if (this.closed) return;
    this.timer = runtime.setTimer(
      () => {
        this.isBusy = false;
        if (this.messages.size > 0 || this.places.some(({ isWaiting }) => isWaiting)) this.listen();
      },
      this.retryMs,
      true,
    );
    this.retryMs = Math.min(2 * this.retryMs, MAX_RETRY_MS);
  }
}

/** Returns messages as notifications on the channel of all processes. */
export const messagesOf = (
  listener: PostgresListener,
  { notify }: Pick<PostgresNames, 'notify'>,
): NoteMessages => ({
  listen: (row, message) => listener.onMessage(row, message),
  send: (row, text) => {
    const payload = bytes(`${row}${NAME_END}${text}`);
    if (payload.length > MAX_PAYLOAD) return undefined;
    return { sql: sql`SELECT ${notify(sql`${payload}::text`)}`, read: nothing };
  },
});

const listenTo = ({ shared, own }: ListenerHost['channels']): Sql =>
  raw(`LISTEN "${shared}"; LISTEN "${own}"`);

const MEANWHILE = 'Until it can, waiters find out about a release only when they ask.';

const NOT_HEARD =
  'PostgresStore hears no notifications: a pooler does not pass them on, or listenUrl leads to another database. ' +
  `Give listenUrl, an address of the server itself, for the same database. ${MEANWHILE}`;
