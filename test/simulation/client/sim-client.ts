import { EventEmitter } from 'node:events';
import type { RedisLike } from '../../../lib/stores/redis/connection/redis-client.js';
import type { SimProcess } from '../engine/sim-process.js';
import type { Link } from '../network/link.js';
import type { Session } from '../network/session.js';
import type { Command, Reply } from '../server/command.js';
import { ErrorReply } from '../server/resp.js';

/** Pause before another attempt to connect, in ms. */
const RECONNECT_MS = 30;

/** A command that has no reply yet. */
interface Sent {
  readonly session: Session;
  reject(error: Error): void;
}

/** The socket, as far as the store looks at it. */
interface SimStream {
  destroyed: boolean;
  readonly bytesRead: number;
  destroy(): void;
}

const replyError = ({ message }: ErrorReply): Error =>
  Object.assign(new Error(message), { name: 'ReplyError' });

const asList = (value: Reply): unknown =>
  value instanceof ErrorReply ? replyError(value) : Array.isArray(value) ? value.map(asList) : value;

/**
 * Stands in for a client of ioredis, over a simulated connection. As with the settings of the store, it sends each command
 * at once and at most once. It emits the same events in the same order, and connects again by itself.
 */
export class SimClient extends EventEmitter implements RedisLike {
  status = 'wait';
  stream: SimStream | null = null;
  private session: Session | undefined;
  private attempt = 0;
  private timer: unknown;
  private closing = false;
  private readonly sent = new Set<Sent>();
  private readonly channels = new Set<string>();

  constructor(
    private readonly process: SimProcess,
    private readonly link: Link,
    readonly options: object,
  ) {
    super();
    this.setMaxListeners(0);
  }

  /** Number of commands without a reply. */
  get pending(): number {
    return this.sent.size;
  }

  connect(): Promise<void> {
    this.closing = false;
    this.open();
    return Promise.resolve();
  }

  disconnect(reconnect = false): void {
    this.closing = !reconnect;
    if (this.closing) this.process.clearTimer(this.timer);
    if (this.stream && !this.stream.destroyed) return this.stream.destroy();
    if (this.closing && this.status !== 'end') this.end();
  }

  call(command: string, ...args: (string | number)[]): Promise<unknown> {
    return this.request([command.toLowerCase(), ...args], ([reply]) => reply!);
  }

  subscribe(...channels: string[]): Promise<unknown> {
    for (const channel of channels) this.channels.add(channel);
    return this.request(['subscribe', ...channels], (replies) => replies[0]!);
  }

  unsubscribe(...channels: string[]): Promise<unknown> {
    for (const channel of channels) this.channels.delete(channel);
    return this.request(['unsubscribe', ...channels], (replies) => replies[0]!);
  }

  /** Emits a message on each channel that the server did not send. */
  emitStrayMessages(): void {
    if (this.status === 'ready') for (const channel of [...this.channels]) this.emit('message', channel, '0');
  }

  private request(command: Command, replyOf: (replies: readonly Reply[]) => Reply): Promise<unknown> {
    const { session, stream } = this;
    if (this.status === 'end') return Promise.reject(new Error('Connection is closed.'));
    if (this.status !== 'ready' || !session || stream?.destroyed) {
      return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
    }
    return new Promise((resolve, reject) => {
      const sent: Sent = { session, reject };
      this.sent.add(sent);
      session.request(command, (replies) => {
        if (!this.sent.delete(sent)) return;
        const reply = replyOf(replies);
        if (reply instanceof ErrorReply) reject(replyError(reply));
        else resolve(asList(reply));
      });
    });
  }

  private open(): void {
    this.status = 'connecting';
    const attempt = ++this.attempt;
    const stream: SimStream = {
      destroyed: false,
      bytesRead: 0,
      destroy: () => {
        if (stream.destroyed) return;
        stream.destroyed = true;
        const { session } = this;
        session?.hangUp();
        this.process.afterArrivals(() => this.ended(stream));
      },
    };
    this.stream = stream;
    this.link.connect((session) => {
      if (attempt !== this.attempt || stream.destroyed) return session?.hangUp();
      if (!session) {
        stream.destroyed = true;
        this.emit('error', new Error('connect ECONNREFUSED'));
        return this.ended(stream);
      }
      this.session = session;
      session.onClose = () => {
        stream.destroyed = true;
        this.ended(stream);
      };
      session.onMessage = (channel, text) => this.emit('message', channel, text);
      this.status = 'connect';
      this.emit('connect');
      if (stream.destroyed) return;
      this.status = 'ready';
      this.emit('ready');
    });
  }

  /** The connection has ended, or could not be made. */
  private ended(stream: SimStream): void {
    if (this.stream !== stream) return;
    this.stream = null;
    this.attempt++;
    this.session = undefined;
    this.channels.clear();
    this.status = 'close';
    for (const { reject } of this.sent)
      reject(new Error('Reached the max retries per request limit (which is 0).'));
    this.sent.clear();
    if (this.closing) return this.end();
    this.emit('close');
    // A listener may have closed or connected it.
    if (this.status !== 'close') return;
    this.status = 'reconnecting';
    this.emit('reconnecting');
    this.timer = this.process.setTimer(() => this.open(), RECONNECT_MS);
  }

  private end(): void {
    this.status = 'end';
    this.emit('close');
    this.emit('end');
  }
}
