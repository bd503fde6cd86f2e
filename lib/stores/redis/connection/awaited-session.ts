import type { CommandDeadlines } from '../../load/command-deadlines.js';
import type { RedisFailure } from './redis-failure.js';
import type { RedisSession } from './redis-session.js';

interface Waiter {
  resolve(session: RedisSession): void;
  reject(failure: RedisFailure): void;
}

/** Requests that wait for the next connection. None of them has been sent. */
export class AwaitedSession {
  private waiters = new Set<Waiter>();

  constructor(private readonly deadlines: CommandDeadlines) {}

  /**
   * @param late makes the failure of a request that is still waiting after the command time-out; undefined when it may
   *   wait as long again
   */
  next(late: () => RedisFailure | undefined): Promise<RedisSession> {
    return new Promise((resolve, reject) => {
      const onLate = (): void => {
        const failure = late();
        if (!failure) return void (inFlight = this.deadlines.add(onLate));
        this.waiters.delete(waiter);
        reject(failure);
      };
      let inFlight = this.deadlines.add(onLate);
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

  /** Hands the new connection to all waiting requests. */
  begin(session: RedisSession): void {
    for (const waiter of this.take()) waiter.resolve(session);
  }

  /** Rejects all waiting requests, each with a failure of its own. */
  reject(failure: () => RedisFailure): void {
    for (const waiter of this.take()) waiter.reject(failure());
  }

  private take(): Set<Waiter> {
    const { waiters } = this;
    this.waiters = new Set();
    return waiters;
  }
}
