import type { CommandDeadlines } from './command-deadlines.js';
import type { RedisFailure } from './redis-failure.js';
import type { RedisSession } from './redis-session.js';

interface Waiter {
  resolve(session: RedisSession): void;
  reject(failure: RedisFailure): void;
}

/** Those who wait for the next connection, within the command time-out: nothing of theirs was sent. */
export class AwaitedSession {
  private waiters = new Set<Waiter>();

  constructor(private readonly deadlines: CommandDeadlines) {}

  /** @param late what there is to say when the time-out is over. */
  next(late: () => RedisFailure): Promise<RedisSession> {
    return new Promise((resolve, reject) => {
      const inFlight = this.deadlines.add(() => {
        this.waiters.delete(waiter);
        reject(late());
      });
      const waiter: Waiter = {
        resolve: (session) => {
          inFlight.done = true;
          resolve(session);
        },
        reject: (failure) => {
          inFlight.done = true;
          reject(failure);
        },
      };
      this.waiters.add(waiter);
    });
  }

  /** There is one. */
  begin(session: RedisSession): void {
    for (const waiter of this.take()) waiter.resolve(session);
  }

  /** There will be none for them. Each gets a failure of its own. */
  refuse(failure: () => RedisFailure): void {
    for (const waiter of this.take()) waiter.reject(failure());
  }

  private take(): Set<Waiter> {
    const { waiters } = this;
    this.waiters = new Set();
    return waiters;
  }
}
