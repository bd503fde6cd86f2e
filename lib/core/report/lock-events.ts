import { LockConfigurationError, type LeadershipEnd, type LossReason } from '../errors/lock.errors.js';
import { formatValue, oneLine, textOf } from '../util/describe.js';
import type { LockHolder } from '../seam/process-record.js';
import type { LockKind } from '../kinds/kinds.js';
import type { HeldAs } from '../seam/reply.js';
import type { WithShownKey } from '../util/shown-key.js';

/** What the events of a lock or a permit have in common. */
export interface LockEvent {
  /** Key as the caller wrote it, or as `redactKey` shows it. */
  readonly key: string;
  /** Kind of lock as `held()` shows it. */
  readonly kind: LockKind;
  /** Label of the call: for metrics, which cannot have a series for each key. */
  readonly label: string;
}

/**
 * Events for operators. There is one event for each key, as the caller wrote it, or as `redactKey` shows it. Durations are
 * whole ms.
 */
export interface LockEvents {
  /**
   * A lock or a permit was acquired. A nested call, which acquires nothing in the store, has no event. `fencingToken`
   * is undefined for read locks, for permits and with `fencing: false`.
   */
  acquired: LockEvent & { readonly waitedMs: number; readonly fencingToken: number | undefined };
  /**
   * A caller was rejected: its wait timed out, or the queue was full. `waitersAhead`, `heldAs` and `holder` are those of
   * `LockNotAcquiredError`.
   */
  busy: LockEvent & {
    readonly waitedMs: number;
    readonly waitersAhead?: number | undefined;
    readonly heldAs?: HeldAs | undefined;
    readonly holder?: LockHolder | undefined;
  };
  /**
   * A caller has waited for `slowWaitMs`, and goes on waiting; once for each key of a call. `waitersAhead`, `heldAs` and
   * `holder` are those of `LockNotAcquiredError`.
   */
  waiting: LockEvent & {
    readonly waitedMs: number;
    readonly waitersAhead?: number | undefined;
    readonly heldAs?: HeldAs | undefined;
    readonly holder?: LockHolder | undefined;
  };
  /** A lock or a permit has been held for `slowHoldMs`, and still is. Once for each hold. */
  'slow-hold': LockEvent & { readonly heldMs: number };
  /**
   * A holder released its lock: in the store, where it may stay for `holdAtLeastMs`, or by a hand-off to the next
   * caller of this process. `confirmed` is false if the store failed: the lock may then stay until its lease ends.
   */
  released: LockEvent & { readonly heldMs: number; readonly confirmed: boolean };
  /** A lease ended before its holder released it. */
  lost: LockEvent & { readonly heldMs: number; readonly reason: LossReason };
  /** Another client asks the holder to release its lock. The lock stays valid; see `lease.onRevocationRequested`. */
  'revocation-requested': LockEvent & { readonly heldMs: number };
  /**
   * This process became the leader. The event comes right before the function of the candidate is called. `fencingToken` is
   * undefined with `fencing: false`.
   */
  'leader-elected': LockEvent & { readonly waitedMs: number; readonly fencingToken: number | undefined };
  /**
   * This process leads no longer, for whatever reason; there is one event for each `leader-elected`. `cause` is the error of
   * the candidate's function, for the reason `rejected`. The lock is released when the function has settled.
   */
  'leader-lost': LockEvent & {
    readonly ledMs: number;
    readonly reason: LeadershipEnd;
    readonly cause?: unknown;
  };
  /** The store stopped working; emitted once for each outage. */
  'store-down': { readonly cause: unknown };
  /** The store works again. */
  'store-up': { readonly downMs: number };
}

const EVENTS: Readonly<Record<keyof LockEvents, true>> = {
  acquired: true,
  busy: true,
  waiting: true,
  'slow-hold': true,
  released: true,
  lost: true,
  'revocation-requested': true,
  'leader-elected': true,
  'leader-lost': true,
  'store-down': true,
  'store-up': true,
};

export type { LeadershipEnd, LossReason };

export type LockEventListener<E extends keyof LockEvents> = (event: LockEvents[E]) => void;

/** Logger for messages to an operator. Nest's logger fits. */
export interface LockLogger {
  warn(message: string): void;
  log(message: string): void;
  /** Default: such messages are dropped. */
  debug?(message: string): void;
  /** Default: such messages are warnings. */
  error?(message: string): void;
}

/** Wraps a logger so that its errors affect neither the lock nor its holder. */
export const harmless = (logger: LockLogger): Required<LockLogger> => {
  const safely = (write: () => void): void => {
    try {
      write();
    } catch (error) {
      process.emitWarning(`The logger of the lock service failed: ${textOf(error)}`);
    }
  };
  return {
    warn: (message) => safely(() => logger.warn(message)),
    log: (message) => safely(() => logger.log(message)),
    debug: (message) => safely(() => logger.debug?.(message)),
    error: (message) => safely(() => (logger.error ? logger.error(message) : logger.warn(message))),
  };
};

/** Delivers events. An error of a listener affects neither the lock nor the next listener. */
export class LockEventHub {
  private readonly listeners = new Map<keyof LockEvents, Set<(event: never) => void>>();

  constructor(private readonly logger: LockLogger) {}

  /** Registers a listener; returns a function that removes it. */
  on<E extends keyof LockEvents>(event: E, listener: LockEventListener<E>): () => void {
    if (typeof event !== 'string' || !Object.hasOwn(EVENTS, event)) {
      throw new LockConfigurationError(
        `There is no event ${formatValue(event)}; there are ${Object.keys(EVENTS).join(', ')}.`,
      );
    }
    if (typeof listener !== 'function') {
      throw new LockConfigurationError(
        `The listener of the event ${formatValue(event)} must be a function, but is ${formatValue(listener)}.`,
      );
    }
    // A wrapper for each registration: if a function is registered twice, each returned function removes one of the
    // two.
    const entry = (payload: LockEvents[E]): void => listener(payload);
    const entries = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, entries.add(entry));
    return () => {
      entries.delete(entry);
      if (entries.size === 0 && this.listeners.get(event) === entries) this.listeners.delete(event);
    };
  }

  /** Returns whether an event has listeners. */
  has(event: keyof LockEvents): boolean {
    return this.listeners.has(event);
  }

  /** Emits an event. Builds it only if it has listeners. */
  emit<E extends keyof LockEvents>(event: E, build: () => WithShownKey<LockEvents[E]>): void {
    const entries = this.listeners.get(event);
    if (!entries) return;
    const payload = build() as LockEvents[E];
    for (const entry of [...entries]) {
      try {
        // A copy for each: a listener may change what it was given.
        const returned: unknown = (entry as LockEventListener<E>)({ ...payload });
        // Also a thenable, or a promise of another realm.
        if (typeof (returned as PromiseLike<unknown> | undefined)?.then === 'function')
          Promise.resolve(returned).catch((error: unknown) => this.complain(event, error));
      } catch (error) {
        this.complain(event, error);
      }
    }
  }

  private complain(event: string, error: unknown): void {
    this.logger.warn(`A listener for the lock event "${event}" failed: ${oneLine(textOf(error))}`);
  }
}
