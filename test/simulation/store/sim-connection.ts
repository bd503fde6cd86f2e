import type { Random } from '../engine/random.js';
import type { SimProcess } from '../engine/sim-process.js';
import type { Link } from '../network/link.js';
import type { Session } from '../network/session.js';
import type { Command, Refusal, Value } from '../server/commands.js';
import { Deadline } from './deadline.js';
import { SimFailure } from './sim-failure.js';

/** Promises between a reply and the store that asked. */
const STEPS = [0, 0, 0, 1, 2, 3, 4, 6];

/** How long a client waits before it connects again, in ms. */
const RECONNECT_MS = 30;

/** What a server says that may answer otherwise without anything being changed there. */
const PASSING = /^(READONLY|LOADING)/;

interface Waiter {
  resolve(session: Session): void;
  reject(failure: SimFailure): void;
}

interface Sent {
  readonly session: Session;
  fail(failure: SimFailure): void;
}

/**
 * The connection that commands travel on. As in the Redis store each is sent at most once and ends within the
 * time-out, a session that is silent for that long is given up, and a new one is used once it has been identified.
 */
export class SimConnection {
  private session: Session | undefined;
  private readonly waiters = new Set<Waiter>();
  private readonly sent = new Set<Sent>();
  private closed = false;

  constructor(
    private readonly process: SimProcess,
    private readonly link: Link,
    private readonly timeoutMs: number,
    private readonly random: Random,
  ) {
    this.connect();
  }

  get current(): Session | undefined {
    return this.session;
  }

  /** Commands that wait for a connection or for a reply. */
  get pending(): number {
    return this.waiters.size + this.sent.size;
  }

  async send<T extends Value>(command: Command): Promise<T> {
    const value = await this.sendOn(this.session ?? (await this.ready()), command);
    // How many promises a client puts between a reply and its caller is its own affair, and not the same for each
    // command: what is read in one go may go on in any order.
    for (let steps = this.random.pick(STEPS); steps > 0; steps--) await Promise.resolve();
    return value as T;
  }

  close(): void {
    this.closed = true;
    const { session } = this;
    if (session) this.drop(session);
    for (const waiter of [...this.waiters])
      waiter.reject(new SimFailure('the store is closed', 'not-executed'));
  }

  private sendOn(session: Session, command: Command): Promise<Value> {
    return new Promise((resolve, reject) => {
      const sent: Sent = {
        session,
        fail: (failure) => {
          deadline.settle();
          if (this.sent.delete(sent)) reject(failure);
        },
      };
      const deadline = new Deadline(this.process, this.timeoutMs, () => {
        sent.fail(
          new SimFailure(`no answer within ${this.timeoutMs} ms`, 'unknown', { passing: true }, session),
        );
        this.drop(session);
      });
      this.sent.add(sent);
      session.request(command, (reply) => {
        if (!('refused' in reply)) {
          deadline.settle();
          if (this.sent.delete(sent)) resolve(reply.value);
          return;
        }
        if (reply.refused.startsWith('READONLY')) this.drop(session);
        sent.fail(this.refusal(reply, session));
      });
    });
  }

  private refusal({ refused, transient, keyOnly }: Refusal, session: Session): SimFailure {
    const passing = PASSING.test(refused);
    const options = { transient, passing, keyOnly };
    return new SimFailure(`the server refused: ${refused}`, 'not-executed', options, session);
  }

  private ready(): Promise<Session> {
    if (this.closed) return Promise.reject(new SimFailure('the store is closed', 'not-executed'));
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        deadline.settle();
        this.waiters.delete(waiter);
      };
      const waiter: Waiter = {
        resolve: (session) => {
          settle();
          resolve(session);
        },
        reject: (failure) => {
          settle();
          reject(failure);
        },
      };
      const deadline = new Deadline(this.process, this.timeoutMs, () =>
        waiter.reject(
          new SimFailure(`no connection within ${this.timeoutMs} ms`, 'not-executed', { passing: true }),
        ),
      );
      this.waiters.add(waiter);
    });
  }

  private connect(): void {
    if (this.closed) return;
    this.link.connect((session) => {
      if (!session) return this.connectLater();
      if (this.closed) return session.hangUp();
      session.onClose = () => this.ended(session);
      this.identify(session);
    });
  }

  private connectLater(): void {
    if (!this.closed) this.process.setTimer(() => this.connect(), RECONNECT_MS);
  }

  /** A new connection counts once it is known how to end it from elsewhere. */
  private identify(session: Session): void {
    const deadline = new Deadline(this.process, this.timeoutMs, () => {
      session.hangUp();
      this.ended(session);
    });
    session.request({ name: 'identify' }, () => {
      if (!deadline.settle()) return;
      if (this.closed) return session.hangUp();
      this.session = session;
      for (const waiter of [...this.waiters]) waiter.resolve(session);
    });
    const { onClose } = session;
    session.onClose = () => {
      deadline.settle();
      onClose();
    };
  }

  /** Gives the session up at once, so that what is asked next waits for a new one. */
  private drop(session: Session): void {
    if (this.session !== session) return;
    this.session = undefined;
    session.hangUp();
    this.process.afterArrivals(() => this.ended(session));
  }

  private ended(session: Session): void {
    if (this.session === session) this.session = undefined;
    for (const sent of [...this.sent]) {
      if (sent.session !== session) continue;
      sent.fail(
        new SimFailure(
          'the connection was lost before the answer came',
          'unknown',
          { passing: true },
          session,
        ),
      );
    }
    this.connectLater();
  }
}
