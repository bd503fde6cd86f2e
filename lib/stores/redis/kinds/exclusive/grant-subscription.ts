import type { Watch } from '../../../../core/seam/lock-store.js';
import { StoreFailure } from '../../../../core/seam/store-failure.js';
import { isNotPermitted } from '../../connection/redis-failure.js';
import type { RedisSession } from '../../connection/redis-session.js';
import type { RedisLink } from '../redis-link.js';

/** Beginning of the message that a process sends to itself. */
const LOOPBACK = 'loopback ';
/** Maximum wait for that message before waiters send requests, in ms. */
const LOOPBACK_MS = 100;

export interface GrantListener {
  /** Receives a message that came while the subscription was open. */
  received(text: string): void;
  /** Called when it has opened: earlier messages are lost. */
  opened(): void;
  /** Receives the failure when it cannot open: this Redis user may not publish or subscribe here. */
  refused(failure: StoreFailure): void;
}

/**
 * The grant subscription of one process's channel, which knows whether it receives messages. The process sends a
 * message to itself over its command connection: the loopback check. When it arrives over the other connection, both
 * lead to one server, and no message is lost until one of them ends.
 *
 * The subscription opens with the first waiter and stays open as long as the process lives. That costs one
 * subscription, and a later wait need not begin with it.
 */
export class GrantSubscription {
  private watch: Watch | undefined;
  private loopback = '';
  private checkingOn: RedisSession | undefined;
  private openOn: RedisSession | undefined;
  private opening = 0;
  /** Calls for the end of the opening in progress; undefined while there is none. */
  private heldBack: (() => void)[] | undefined;

  constructor(
    private readonly link: RedisLink,
    private readonly channel: string,
    /** Name whose server it is about. */
    private readonly name: string,
    private readonly listener: GrantListener,
    /** Counts the openings of all subscriptions of the process. */
    private readonly openings: { count: number },
  ) {}

  /** Number of the current opening, which no other subscription has; undefined while it is not certain that messages arrive. */
  get epoch(): number | undefined {
    const { openOn, session, link } = this;
    const isOpen = openOn !== undefined && openOn === session && link.channels.isLive(this.channel);
    return isOpen ? this.opening : undefined;
  }

  /** Opens the subscription, or opens it again after the command connection has changed. */
  open(): void {
    if (!this.watch) {
      this.heldBack ??= [];
      this.watch = this.link.channels.watch(this.channel, {
        notified: () => this.checkLoopback(),
        message: (text) => this.message(text),
        failed: (failure) => {
          if (isNotPermitted(failure)) this.refused(failure);
          else this.settle();
        },
        permanent: true,
      });
    }
    if (this.watch.live && this.epoch === undefined && this.checkingOn !== this.session) {
      this.checkLoopback();
    }
  }

  close(): void {
    this.watch?.close();
    this.watch = undefined;
    this.openOn = undefined;
    this.settle();
  }

  /** The current connection to its server. */
  get session(): RedisSession | undefined {
    return this.link.topology.connectionTo(this.name)?.current;
  }

  /** Calls `notify` at once, or when the opening under way has ended. */
  whenSettled(notify: () => void): void {
    if (this.heldBack) this.heldBack.push(notify);
    else notify();
  }

  private checkLoopback(): void {
    const { topology, channels, runtime } = this.link;
    this.openOn = undefined;
    const connection = topology.connectionTo(this.name);
    const session = connection?.current;
    if (!connection || !session || !channels.isLive(this.channel)) return this.settle();
    const loopback = LOOPBACK + runtime.newId();
    this.loopback = loopback;
    this.checkingOn = session;
    this.heldBack ??= [];
    const args = [this.channel, loopback];
    const settle = (): void => {
      if (this.loopback === loopback) this.settle();
    };
    connection.send({ command: topology.publish, args, read: Number }).then(
      // The message itself comes on the other connection, unless it is lost, or the subscription is closed.
      (receivers) => (receivers === 0 ? settle() : void runtime.setTimer(settle, LOOPBACK_MS, true)),
      (failure: unknown) => {
        if (this.loopback === loopback) this.checkingOn = undefined;
        if (failure instanceof StoreFailure && isNotPermitted(failure)) this.refused(failure);
        settle();
      },
    );
  }

  private message(text: string): void {
    if (!text.startsWith(LOOPBACK)) return this.listener.received(text);
    if (text !== this.loopback || this.checkingOn !== this.session) return;
    this.openOn = this.checkingOn;
    this.opening = ++this.openings.count;
    this.listener.opened();
    this.settle();
  }

  /** Closes it until the next waiter: by then the user may have the right. */
  private refused(failure: StoreFailure): void {
    this.watch?.close();
    this.watch = undefined;
    this.checkingOn = undefined;
    this.settle();
    this.listener.refused(failure);
  }

  private settle(): void {
    const { heldBack } = this;
    this.heldBack = undefined;
    heldBack?.forEach((notify) => notify());
  }
}
