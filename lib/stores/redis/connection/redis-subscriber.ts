import type { Watch, WatchListener } from '../../../core/seam/lock-store.js';
import { Portions, portionsOf } from '../../../core/util/portions.js';
import { unbound, type Runtime } from '../../../core/util/runtime.js';
import { cleanError, secretsOfClient } from './clean-error.js';
import { CommandDeadlines } from '../../load/command-deadlines.js';
import { watchHandshakes } from './handshake-watch.js';
import { dropSocket, type RedisLike } from './redis-client.js';
import { RedisFailure, isPassing, isReplyError } from './redis-failure.js';
import { every } from './timers.js';

/** A listener that gets the text of messages, instead of a wake-up only. */
export interface MessageListener extends WatchListener {
  message?(text: string): void;
  /** True for a permanent listener. It is not counted as a waiter when deciding whether to send PING. */
  readonly permanent?: boolean;
}

interface Channel {
  readonly listeners: Set<MessageListener>;
  live: boolean;
}

const isWaitedFor = ({ listeners }: Channel): boolean => [...listeners].some(({ permanent }) => !permanent);

/** Interval at which a subscriber with waiters is checked, in ms. */
const PING_MS = 1_000;
/**
 * Length of an interruption, in ms, after which waiters ask the store themselves. Not 0: when Redis stops, the command
 * connection may notice later than this one. A command sent in between would have an unknown outcome.
 */
const NOT_SUBSCRIBED_MS = 100;
/** Maximum number of channels in one SUBSCRIBE or UNSUBSCRIBE. */
const BATCH = 500;

export interface SubscriberOptions {
  readonly timeoutMs: number;
  readonly runtime: Runtime;
  /** Whether to use sharded Pub/Sub, at the server of a cluster that has the slot. */
  readonly isSharded?: boolean;
  /** Called when the server ends subscriptions by itself, because the slot has moved to another server. */
  readonly onMoved?: () => void;
}

/** Returns whether ioredis 5 got a reply without a request: the server has ended a subscription by itself. */
const isUnrequested = ({ message }: Error): boolean => message.startsWith('Command queue state error');

/** Splits names into halves. A SUBSCRIBE fails as a whole when one channel is refused: halving finds that channel. */
const halves = (names: readonly string[]): string[][] => {
  const middle = Math.ceil(names.length / 2);
  return [names.slice(0, middle), names.slice(middle)].filter((half) => half.length > 0);
};

/**
 * The subscriber connection of all waiters of the process. It counts listeners by channel. After each reconnect it
 * subscribes again and wakes each waiter to ask the store, because messages may be lost.
 */
export class RedisSubscriber {
  /** ECMAScript-private: the client knows the password. */
  readonly #client: RedisLike;
  private readonly channels = new Map<string, Channel>();
  /** Channels to subscribe to, and to leave, at the end of this tick: its changes share a command. */
  private readonly joining = new Set<string>();
  private readonly leaving = new Set<string>();
  /** Number of listeners that are not permanent. */
  private waiters = 0;
  /** Many waiters may be woken at the same time. */
  private readonly portions: Portions;
  private readonly deadlines: CommandDeadlines;
  private endPings: (() => void) | undefined;
  /** Whether a message has come since the last check. */
  private received = false;
  private closed = false;

  private readonly isSharded: boolean;

  constructor(client: RedisLike, { timeoutMs, runtime, isSharded = false, onMoved }: SubscriberOptions) {
    this.isSharded = isSharded;
    this.#client = client;
    this.deadlines = new CommandDeadlines(timeoutMs, runtime);
    this.portions = new Portions(runtime);
    // The next command of the other connection reports what is wrong; this one only goes on trying.
    client.on('error', (error) => {
      if (isSharded && isUnrequested(error)) moved();
    });
    // The client does not say which of its subscriptions have ended: reconnect, and subscribe to all again.
    const moved = (): void => {
      onMoved?.();
      dropSocket(client);
    };
    if (isSharded) client.on('moved', moved);
    client.on(isSharded ? 'smessage' : 'message', (channel: string, text: string) => {
      this.received = true;
      this.wakeUp(this.channels.get(channel), text);
    });
    client.on('close', () => this.disconnected());
    watchHandshakes(client, this.deadlines, () => this.resubscribe());
  }

  /** Connects, unless that has been done. The client goes on trying by itself. */
  open(): void {
    if (['end', 'wait'].includes(this.#client.status)) void this.#client.connect().catch(() => undefined);
  }

  isLive(channel: string): boolean {
    return this.channels.get(channel)?.live ?? false;
  }

  /** Number of channels with waiters; for tests. */
  get size(): number {
    return [...this.channels.values()].filter(isWaitedFor).length;
  }

  /** See `Channels.watch`. */
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
    if (!listener.permanent) {
      this.waiters++;
      this.endPings ??= every(this.deadlines.runtime, PING_MS, () => this.ping());
    }
    if (!existing) {
      this.channels.set(name, channel);
      this.change(this.joining, name);
    } else if (channel.live) {
      // The channel was live before this listener: wake it, because it may have missed a message.
      queueMicrotask(() => channel.listeners.has(listener) && listener.notified());
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
    for (const names of [this.channels, this.joining, this.leaving]) names.clear();
    this.stopPinging();
    this.#client.disconnect();
  }

  private leave(name: string, channel: Channel, listener: MessageListener): void {
    if (!channel.listeners.delete(listener)) return;
    if (!listener.permanent && --this.waiters === 0) this.stopPinging();
    if (channel.listeners.size > 0 || this.channels.get(name) !== channel) return;
    this.channels.delete(name);
    if (!this.joining.delete(name)) this.change(this.leaving, name);
  }

  private change(names: Set<string>, name: string): void {
    if (this.joining.size + this.leaving.size === 0) process.nextTick(() => this.sendChanges());
    names.add(name);
  }

  private sendChanges(): void {
    const [left, joined] = [this.batchesOf(this.leaving), this.batchesOf(this.joining)];
    this.leaving.clear();
    this.joining.clear();
    if (this.#client.status !== 'ready') return;
    // A channel that was left and is watched again is in both.
    for (const names of left) void this.request(this.endSubscription(names)).catch(() => undefined);
    for (const names of joined) this.subscribe(names);
  }

  /** Each SSUBSCRIBE names one channel, because all channels of one request must be in one slot. */
  private batchesOf(names: Iterable<string>): readonly string[][] {
    return portionsOf(names, this.isSharded ? 1 : BATCH);
  }

  private subscribe(names: readonly string[]): void {
    if (this.#client.status !== 'ready') return;
    // Keep the entries as they are now: a channel that is left and watched again has its own SUBSCRIBE after this one.
    const requested = names.map((name) => this.channels.get(name));
    this.request(this.beginSubscription(names)).then(
      () => {
        for (const channel of requested) {
          if (!channel) continue;
          channel.live = true;
          this.wakeUp(channel);
        }
      },
      (error: unknown) => {
        // After a lost connection the subscriber tries again; a refusal is final.
        if (!isReplyError(error)) return;
        if (isPassing(error)) return this.subscribeLater(names, requested);
        const stillWanted = names.filter(
          (name, i) => requested[i] && this.channels.get(name) === requested[i],
        );
        if (names.length === 1) this.reject(requested[0], error);
        else for (const half of halves(stillWanted)) this.subscribe(half);
      },
    );
  }

  /** Subscribes later to the channels that are still wanted then and that no new connection has subscribed to. */
  private subscribeLater(names: readonly string[], requested: readonly (Channel | undefined)[]): void {
    const again = (): void => {
      const wanted = names.filter((name, i) => requested[i] && this.channels.get(name) === requested[i]);
      const notSubscribed = wanted.filter((name) => !this.isLive(name));
      if (!this.closed && notSubscribed.length > 0) this.subscribe(notSubscribed);
    };
    this.deadlines.runtime.setTimer(again, NOT_SUBSCRIBED_MS, true);
  }

  private beginSubscription(names: readonly string[]): Promise<unknown> {
    const client = this.#client;
    return unbound(() => (this.isSharded ? client.call('ssubscribe', ...names) : client.subscribe(...names)));
  }

  private endSubscription(names: readonly string[]): Promise<unknown> {
    const client = this.#client;
    return unbound(() =>
      this.isSharded ? client.call('sunsubscribe', ...names) : client.unsubscribe(...names),
    );
  }

  private reject(channel: Channel | undefined, error: Error): void {
    const cause = cleanError(error, secretsOfClient(this.#client));
    const message = `Redis refused ${this.isSharded ? 'SSUBSCRIBE' : 'SUBSCRIBE'}: ${cause.message}`;
    const failure = new RedisFailure(message, 'not-executed', { cause });
    for (const listener of [...(channel?.listeners ?? [])]) listener.failed(failure);
  }

  private resubscribe(): void {
    if (this.closed) return this.#client.disconnect();
    // Of the connection before, whose end left all channels.
    for (const names of [this.joining, this.leaving]) names.clear();
    for (const names of this.batchesOf(this.channels.keys())) this.subscribe(names);
  }

  /** Marks all channels as not subscribed. If that lasts, waiters ask the store: Redis may be gone for good. */
  private disconnected(): void {
    const interrupted = [...this.channels.values()].filter((channel) => channel.live);
    for (const channel of interrupted) channel.live = false;
    if (interrupted.length === 0) return;
    const wakeAll = (): void => {
      for (const channel of interrupted) if (!channel.live) this.wakeUp(channel);
    };
    this.deadlines.runtime.setTimer(wakeAll, NOT_SUBSCRIBED_MS, true);
  }

  /** Notifies the listeners. Without a text it is a wake-up: messages may have been lost. */
  private wakeUp(channel: Channel | undefined, text?: string): void {
    if (!channel) return;
    const wake = (): void => {
      for (const listener of [...channel.listeners]) {
        // A listener that is woken may close another one.
        if (!channel.listeners.has(listener)) continue;
        if (text !== undefined && listener.message) listener.message(text);
        else listener.notified();
      }
    };
    // A permanent listener hears of a new subscription before it hears anything else.
    if (text !== undefined || isWaitedFor(channel)) this.portions.add(wake);
    else wake();
  }

  private ping(): void {
    const { received } = this;
    this.received = false;
    if (received) return;
    if (this.#client.status === 'ready') void this.request(this.#client.call('ping')).catch(() => undefined);
  }

  private stopPinging(): void {
    this.endPings?.();
    this.endPings = undefined;
  }

  /** Waits for a reply. Drops the connection when none comes in time, so that the client reconnects. */
  private async request(reply: Promise<unknown>): Promise<void> {
    const inFlight = this.deadlines.add(() => {
      inFlight.done = true;
      if (!this.closed) dropSocket(this.#client);
    });
    try {
      await reply;
    } finally {
      inFlight.done = true;
    }
  }
}
