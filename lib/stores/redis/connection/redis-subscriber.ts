import type { Watch, WatchListener } from '../../../core/seam/lock-store.js';
import { unbound } from '../../../core/runtime.js';
import { cleanError, secretsOfClient } from './clean-error.js';
import { CommandDeadlines } from './command-deadlines.js';
import { watchHandshakes } from './handshake-watch.js';
import { dropSocket, type RedisLike } from './redis-client.js';
import { RedisFailure, isPassing, isReplyError } from './redis-failure.js';

/** A listener that is told what a message says, instead of that there was one. */
export interface MessageListener extends WatchListener {
  message?(text: string): void;
  /** It is there for whoever waits on other channels: while it is alone, nobody waits. */
  readonly standing?: boolean;
}

interface Channel {
  readonly listeners: Set<MessageListener>;
  live: boolean;
}

const isWaitedFor = ({ listeners }: Channel): boolean => [...listeners].some(({ standing }) => !standing);

/** How often a subscriber that somebody waits on is asked whether it still lives. */
const PING_MS = 1_000;
/**
 * How long an interruption lasts before waiters look for themselves. Not at once: when Redis
 * stops, the command connection may notice later than this one, and a command sent in between would end as unknown.
 */
const DEAF_MS = 100;
/** How many channels one SUBSCRIBE names after a reconnect. */
const BATCH = 500;

/** How a subscriber listens. */
export interface SubscriberOptions {
  /** With sharded Pub/Sub, at the server of a cluster that has the slot. */
  readonly isSharded?: boolean;
  /** Told when the server ends subscriptions by itself: it has given the slot away. */
  readonly onMoved?: () => void;
}

/** What ioredis 5 says of an answer to nothing it has asked: of a server that ends a subscription by itself. */
const isUnasked = ({ message }: Error): boolean => message.startsWith('Command queue state error');

/** One channel that is refused refuses all of its SUBSCRIBE: which one it is shows when they are asked for in halves. */
const halves = (names: readonly string[]): string[][] => {
  const middle = Math.ceil(names.length / 2);
  return [names.slice(0, middle), names.slice(middle)].filter((half) => half.length > 0);
};

/**
 * One subscriber connection for all waiters of the process. Subscriptions are counted by channel; after every
 * reconnect they are made again here, and each waiter is told to look for itself, because messages may be lost.
 */
export class RedisSubscriber {
  /** Private to the language, because it knows the password. */
  readonly #client: RedisLike;
  private readonly channels = new Map<string, Channel>();
  private readonly deadlines: CommandDeadlines;
  private pinger: NodeJS.Timeout | undefined;
  /** A message came since it was last looked whether the subscriber lives. */
  private heard = false;
  private closed = false;

  private readonly isSharded: boolean;

  constructor(client: RedisLike, timeoutMs: number, { isSharded = false, onMoved }: SubscriberOptions = {}) {
    this.isSharded = isSharded;
    this.#client = client;
    this.deadlines = new CommandDeadlines(timeoutMs);
    // The next command of the other connection reports what is wrong; this one only goes on trying.
    client.on('error', (error) => {
      if (isSharded && isUnasked(error)) moved();
    });
    // Which of its subscriptions have ended the client does not say: all are made again.
    const moved = (): void => {
      onMoved?.();
      dropSocket(client);
    };
    if (isSharded) client.on('moved', moved);
    client.on(isSharded ? 'smessage' : 'message', (channel: string, text: string) => {
      this.heard = true;
      this.hint(this.channels.get(channel), text);
    });
    client.on('close', () => this.deafen());
    watchHandshakes(client, this.deadlines, () => this.resubscribe());
  }

  /** Connects, unless that has been done; the client goes on trying by itself. */
  open(): void {
    if (['end', 'wait'].includes(this.#client.status)) void this.#client.connect().catch(() => undefined);
  }

  /** True when messages of the channel arrive here. */
  isLive(channel: string): boolean {
    return this.channels.get(channel)?.live ?? false;
  }

  /** Number of channels on which somebody waits; for tests. */
  get size(): number {
    return [...this.channels.values()].filter(isWaitedFor).length;
  }

  /** Calls `listener` as {@link KindStore.watch} says, for one channel. Give each watch a listener of its own. */
  watch(name: string, listener: MessageListener): Watch {
    if (this.closed) {
      const failure = new RedisFailure('the lock store is closed', 'not-executed', {});
      queueMicrotask(() => listener.failed(failure));
      return { live: false, close: () => undefined };
    }
    this.open();
    const existing = this.channels.get(name);
    const channel = existing ?? { listeners: new Set(), live: false };
    channel.listeners.add(listener);
    if (!listener.standing) this.pinger ??= unbound(() => setInterval(() => this.ping(), PING_MS).unref());
    if (!existing) {
      this.channels.set(name, channel);
      this.subscribe([name]);
    } else if (channel.live) {
      // Live before this listener was there: what it missed, it has to look up.
      queueMicrotask(() => channel.listeners.has(listener) && listener.hint());
    }
    return {
      get live() {
        return channel.live && channel.listeners.has(listener);
      },
      close: () => this.leave(name, channel, listener),
    };
  }

  close(): void {
    this.closed = true;
    for (const channel of this.channels.values()) channel.listeners.clear();
    this.channels.clear();
    this.stopPinging();
    this.#client.disconnect();
  }

  private leave(name: string, channel: Channel, listener: MessageListener): void {
    if (!channel.listeners.delete(listener)) return;
    if (channel.listeners.size > 0 || this.channels.get(name) !== channel) return this.pingIfWaitedFor();
    this.channels.delete(name);
    this.pingIfWaitedFor();
    if (this.#client.status === 'ready') void this.ask(this.endSubscription(name)).catch(() => undefined);
  }

  private subscribe(names: readonly string[]): void {
    if (this.#client.status !== 'ready') return;
    // The entries as they are now: one that is left and made anew has its own SUBSCRIBE behind this one.
    const asked = names.map((name) => this.channels.get(name));
    this.ask(this.beginSubscription(names)).then(
      () => {
        for (const channel of asked) {
          if (!channel) continue;
          channel.live = true;
          this.hint(channel);
        }
      },
      (error: unknown) => {
        // A lost connection is tried again; a refusal is final.
        if (!isReplyError(error)) return;
        if (isPassing(error)) return this.subscribeLater(names, asked);
        const stillWanted = names.filter((name, i) => asked[i] && this.channels.get(name) === asked[i]);
        if (names.length === 1) this.refuse(asked[0], error);
        else for (const half of halves(stillWanted)) this.subscribe(half);
      },
    );
  }

  /** Those that are still wanted then, and have not been subscribed to by a new connection. */
  private subscribeLater(names: readonly string[], asked: readonly (Channel | undefined)[]): void {
    const again = (): void => {
      const wanted = names.filter((name, i) => asked[i] && this.channels.get(name) === asked[i]);
      const deaf = wanted.filter((name) => !this.isLive(name));
      if (!this.closed && deaf.length > 0) this.subscribe(deaf);
    };
    unbound(() => setTimeout(again, DEAF_MS).unref());
  }

  private beginSubscription(names: readonly string[]): Promise<unknown> {
    return this.isSharded ? this.#client.call('ssubscribe', ...names) : this.#client.subscribe(...names);
  }

  private endSubscription(name: string): Promise<unknown> {
    return this.isSharded ? this.#client.call('sunsubscribe', name) : this.#client.unsubscribe(name);
  }

  private refuse(channel: Channel | undefined, error: Error): void {
    const cause = cleanError(error, secretsOfClient(this.#client));
    const message = `Redis refused ${this.isSharded ? 'SSUBSCRIBE' : 'SUBSCRIBE'}: ${cause.message}`;
    const failure = new RedisFailure(message, 'not-executed', { cause });
    for (const listener of [...(channel?.listeners ?? [])]) listener.failed(failure);
  }

  private resubscribe(): void {
    if (this.closed) return this.#client.disconnect();
    const names = [...this.channels.keys()];
    // One request has channels of one slot only.
    const batch = this.isSharded ? 1 : BATCH;
    for (let i = 0; i < names.length; i += batch) this.subscribe(names.slice(i, i + batch));
  }

  /** Nothing can be heard. Unless that is over soon, waiters look for themselves: Redis may be gone for good. */
  private deafen(): void {
    const deafened = [...this.channels.values()].filter((channel) => channel.live);
    for (const channel of deafened) channel.live = false;
    if (deafened.length === 0) return;
    const hintAll = (): void => {
      for (const channel of deafened) if (!channel.live) this.hint(channel);
    };
    unbound(() => setTimeout(hintAll, DEAF_MS).unref());
  }

  /** Without a text: not because of a message, but because some may have been lost. */
  private hint(channel: Channel | undefined, text?: string): void {
    if (!channel) return;
    for (const listener of [...channel.listeners]) {
      // One that is woken may close another.
      if (!channel.listeners.has(listener)) continue;
      if (text !== undefined && listener.message) listener.message(text);
      else listener.hint();
    }
  }

  private ping(): void {
    const { heard } = this;
    this.heard = false;
    if (heard) return;
    if (this.#client.status === 'ready') void this.ask(this.#client.call('ping')).catch(() => undefined);
  }

  private pingIfWaitedFor(): void {
    for (const channel of this.channels.values()) if (isWaitedFor(channel)) return;
    this.stopPinging();
  }

  private stopPinging(): void {
    clearInterval(this.pinger);
    this.pinger = undefined;
  }

  /** A subscriber that does not answer in time is cut, so that the client connects again. */
  private async ask(answer: Promise<unknown>): Promise<void> {
    const inFlight = this.deadlines.add(() => {
      inFlight.done = true;
      if (!this.closed) dropSocket(this.#client);
    });
    try {
      await answer;
    } finally {
      inFlight.done = true;
    }
  }
}
