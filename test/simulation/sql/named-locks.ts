import type { Agenda } from '../engine/agenda.js';

interface Waiter {
  readonly session: object;
  readonly got: (isMine: boolean) => void;
  isOver: boolean;
}

/** The named locks of MySQL, `GET_LOCK`: each has one session, and the others wait in order. */
export class NamedLocks {
  private readonly owners = new Map<string, object>();
  private readonly waiting = new Map<string, Waiter[]>();

  constructor(private readonly agenda: Agenda) {}

  /** Calls `got` once: with true when the session has the lock, with false after `timeoutMs`. */
  get(session: object, name: string, timeoutMs: number, got: (isMine: boolean) => void): void {
    const owner = this.owners.get(name) ?? session;
    if (owner === session) {
      this.owners.set(name, session);
      return got(true);
    }
    const waiter: Waiter = { session, got, isOver: false };
    const others = this.waiting.get(name) ?? [];
    this.waiting.set(name, [...others, waiter]);
    this.agenda.at(this.agenda.now + timeoutMs, () => {
      if (waiter.isOver) return;
      waiter.isOver = true;
      got(false);
    });
  }

  has(name: string): boolean {
    return this.owners.has(name);
  }

  release(session: object, name: string): void {
    if (this.owners.get(name) !== session) return;
    this.owners.delete(name);
    const others = this.waiting.get(name) ?? [];
    const next = others.find(({ isOver }) => !isOver);
    this.waiting.set(
      name,
      others.filter((one) => one !== next && !one.isOver),
    );
    if (!next) return;
    next.isOver = true;
    this.owners.set(name, next.session);
    next.got(true);
  }

  /** The session has ended. */
  forget(session: object): void {
    for (const waiters of this.waiting.values())
      for (const one of waiters) if (one.session === session) one.isOver = true;
    for (const [name, owner] of [...this.owners]) if (owner === session) this.release(session, name);
  }
}
