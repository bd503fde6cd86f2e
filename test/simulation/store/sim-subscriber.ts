import type { Watch } from '../../../lib/core/seam/lock-store.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { SimProcess } from '../engine/sim-process.js';
import type { Link } from '../network/link.js';
import type { Session } from '../network/session.js';
import type { Quirks } from '../quirks.js';
import type { Command } from '../server/commands.js';
import type { GrantMessage } from '../server/grant-message.js';
import { Deadline } from './deadline.js';

const RECONNECT_MS = 30;
/** How long an interruption lasts before waiters look for themselves, in ms; as in the Redis store. */
const INTERRUPTED_MS = 100;

interface Channel {
  readonly listeners: Set<(grant?: GrantMessage) => void>;
  live: boolean;
  wasLive: boolean;
}

export interface SubscriberOptions {
  readonly timeoutMs: number;
  /** How often a subscriber that somebody waits on is asked whether it still lives. */
  readonly pingMs: number;
  readonly quirks: Quirks;
}

/** The connection that wake-ups come on, for all waiters of a process; as in the Redis store. */
export class SimSubscriber {
  private readonly channels = new Map<string, Channel>();
  private session: Session | undefined;
  private pinger: unknown;
  private closed = false;

  constructor(
    private readonly process: SimProcess,
    private readonly link: Link,
    private readonly options: SubscriberOptions,
  ) {
    this.connect();
  }

  get size(): number {
    return this.channels.size;
  }

  /** The session on which messages of the channel come. */
  sessionOf(name: string): Session | undefined {
    return this.isLive(name) ? this.session : undefined;
  }

  isLive(name: string): boolean {
    return this.channels.get(name)?.live ?? false;
  }

  watch(
    name: string,
    onMessage: (grant?: GrantMessage) => void,
    _onFailure: (failure: StoreFailure) => void,
  ): Watch {
    const existing = this.channels.get(name);
    const channel = existing ?? { listeners: new Set(), live: false, wasLive: false };
    channel.listeners.add(onMessage);
    if (!existing) {
      this.channels.set(name, channel);
      this.subscribe([name]);
      if (this.pinger === undefined) this.pingLater();
    } else if (channel.live) {
      queueMicrotask(() => {
        if (channel.listeners.has(onMessage)) onMessage();
      });
    }
    return {
      get live() {
        return channel.live && channel.listeners.has(onMessage);
      },
      close: () => this.leave(name, channel, onMessage),
    };
  }

  close(): void {
    this.closed = true;
    this.channels.clear();
    this.stopPinging();
    this.session?.hangUp();
    this.session = undefined;
  }

  /** A hint without a reason. */
  wakeAll(): void {
    for (const channel of this.channels.values()) this.wake(channel);
  }

  private leave(name: string, channel: Channel, onMessage: (grant?: GrantMessage) => void): void {
    if (!channel.listeners.delete(onMessage) || channel.listeners.size > 0) return;
    if (this.channels.get(name) !== channel) return;
    this.channels.delete(name);
    if (this.channels.size === 0) this.stopPinging();
    if (this.session) this.send(this.session, { name: 'unsubscribe', channel: name });
  }

  private connect(): void {
    if (this.closed) return;
    this.link.connect((session) => {
      if (!session) return this.connectLater();
      if (this.closed) return session.hangUp();
      this.session = session;
      session.onClose = () => this.ended(session);
      session.onMessage = (name, grant) => this.wake(this.channels.get(name), grant);
      if (this.channels.size > 0) this.subscribe([...this.channels.keys()]);
    });
  }

  private connectLater(): void {
    if (!this.closed) this.process.setTimer(() => this.connect(), RECONNECT_MS);
  }

  private subscribe(names: readonly string[]): void {
    const { session } = this;
    if (!session) return;
    const requested = names.map((name) => this.channels.get(name));
    this.send(session, { name: 'subscribe', channels: names }, () => {
      for (const channel of requested) if (channel) this.becomeLive(channel);
    });
  }

  private becomeLive(channel: Channel): void {
    const again = channel.wasLive;
    channel.live = true;
    channel.wasLive = true;
    if (again || !this.options.quirks.silentWhenLive) this.wake(channel);
  }

  private ended(session: Session): void {
    if (this.session !== session) return;
    this.session = undefined;
    const interrupted = [...this.channels.values()].filter(({ live }) => live);
    for (const channel of interrupted) channel.live = false;
    if (interrupted.length > 0) {
      this.process.setTimer(() => {
        for (const channel of interrupted) if (!channel.live) this.wake(channel);
      }, INTERRUPTED_MS);
    }
    this.connectLater();
  }

  private wake(channel: Channel | undefined, grant?: GrantMessage): void {
    if (!channel) return;
    for (const onMessage of [...channel.listeners]) if (channel.listeners.has(onMessage)) onMessage(grant);
  }

  private pingLater(): void {
    this.pinger = this.process.setTimer(() => {
      if (this.session) this.send(this.session, { name: 'ping' });
      this.pingLater();
    }, this.options.pingMs);
  }

  private stopPinging(): void {
    this.process.clearTimer(this.pinger);
    this.pinger = undefined;
  }

  /** A subscriber that does not answer in time is cut, so that it connects again. */
  private send(session: Session, command: Command, then: () => void = () => undefined): void {
    const deadline = new Deadline(this.process, this.options.timeoutMs, () => {
      if (this.closed || this.session !== session) return;
      session.hangUp();
      this.ended(session);
    });
    session.request(command, () => {
      if (deadline.settle()) then();
    });
  }
}
