import { leadershipOverError } from '../../core/errors/error-messages.js';
import type { LeadershipEnd, LossReason } from '../../core/errors/lock.errors.js';
import type { Lease } from '../../core/lease/lease.js';

/**
 * One leadership, as the function of the leader gets it.
 *
 * @example
 * async lead({ signal, fencingToken }: Leadership): Promise<void> {
 *   while (!signal.aborted) await this.index.rebuild({ signal, fencingToken });
 * }
 */
export interface Leadership {
  /** Key of the leadership, as its candidate wrote it. */
  readonly key: string;
  /**
   * Signal that aborts once, when this process leads no longer. Its reason is a `LockLostError` after a loss of the lock, and
   * else a `LockAbortedError`.
   */
  readonly signal: AbortSignal;
  /**
   * Fencing token: greater than the token of every earlier leader. Pass it to what the leader writes to.
   *
   * @throws LockConfigurationError with `fencing: false`
   */
  readonly fencingToken: number;
  /**
   * Ends the leadership: `signal` aborts. The lock is released when the function of the candidate has settled. This process
   * pauses for 1 to 2 s, then enters at the end of the wait queue.
   */
  readonly resign: () => void;
}

/** Why a leadership ended. */
export interface Ended {
  readonly reason: LeadershipEnd;
  /** Error of the candidate's function, for the reason `rejected`. */
  readonly cause?: unknown;
}

/** One leadership, from the election to its end. The lock may outlast it, until the work has settled. */
export class Term implements Leadership {
  readonly #lease: Lease;
  readonly #controller = new AbortController();
  readonly #onEnd: (ended: Ended) => void;
  #ended: Ended | undefined;

  /** @param onEnd called once, when this process leads no longer */
  constructor(lease: Lease, onEnd: (ended: Ended) => void) {
    this.#lease = lease;
    this.#onEnd = onEnd;
  }

  get key(): string {
    return this.#lease.key;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get fencingToken(): number {
    return this.#lease.fencingToken;
  }

  readonly resign = (): void => void this.end('resigned');

  /** Why it ended; undefined while it has not. */
  get ended(): Ended | undefined {
    return this.#ended;
  }

  /** Whether this process leads now: no other process can have the lock before this is false. */
  get isValid(): boolean {
    return this.#ended === undefined && this.#lease.remainingMs() > 0;
  }

  /** Ends it with its lock, which may be lost already. */
  followLock(): void {
    const { signal } = this.#lease;
    const lost = (): void => void this.end(this.#lease.loss!.reason as LossReason);
    if (signal.aborted) lost();
    else signal.addEventListener('abort', lost, { once: true });
  }

  /** Ends it for the first reason. Returns false if it had ended before. */
  end(reason: LeadershipEnd, cause?: unknown): boolean {
    if (this.#ended) return false;
    this.#ended = reason === 'rejected' ? { reason, cause } : { reason };
    this.#controller.abort(this.#lease.loss ?? this.#overError(reason, cause));
    this.#onEnd(this.#ended);
    return true;
  }

  #overError(reason: LeadershipEnd, cause: unknown): Error {
    return leadershipOverError(
      this.#lease.shown(this.key),
      reason as Parameters<typeof leadershipOverError>[1],
      cause,
    );
  }
}
