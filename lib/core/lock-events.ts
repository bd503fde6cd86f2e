import { LockConfigurationError } from './errors/lock.errors.js';
import { shown, textOf } from './errors/describe.js';
import type { HeldAs } from './seam/reply.js';

/** What an operator may want to hear of. One event for each key, as the caller wrote it; durations are whole ms. */
export interface LockEvents {
  /**
   * A lock or a permit was taken; a nested call, which takes nothing in the store, has no event. `fencingToken` is
   * undefined for read locks, for permits and with `fencing: false`.
   */
  acquired: { readonly key: string; readonly waitedMs: number; readonly fencingToken: number | undefined };
  /**
   * A caller was turned away: its wait was over, or the queue was full. `waitersAhead`: about how many stood before it,
   * as in `LockNotAcquiredError`; and so is `heldAs`.
   */
  busy: {
    readonly key: string;
    readonly waitedMs: number;
    readonly waitersAhead?: number | undefined;
    readonly heldAs?: HeldAs | undefined;
  };
  /**
   * The holder released it: to the store, where it may stay for `holdAtLeastMs`, or to the next caller of the process.
   * `confirmed` is false where the store failed: the store may still have it, at most until the lease ends.
   */
  released: { readonly key: string; readonly heldMs: number; readonly confirmed: boolean };
  /** The lease ended before its holder released it. */
  lost: { readonly key: string; readonly heldMs: number; readonly reason: LossReason };
  /** The store stopped working; said once for each outage. */
  'store-down': { readonly cause: unknown };
  /** The store works again. */
  'store-up': { readonly downMs: number };
}

const EVENTS: Readonly<Record<keyof LockEvents, true>> = {
  acquired: true,
  busy: true,
  released: true,
  lost: true,
  'store-down': true,
  'store-up': true,
};

/** Why a lease was lost. */
export type LossReason =
  /** Its time ran out before it could be renewed. */
  | 'expired'
  /** The store said at a renewal or release that the hold is not there any more. */
  | 'refused'
  /** The store said then that a lock of another kind, of a client that is not of this library, was taken beside it. */
  | 'entered'
  /** `forceUnlock` of this process ended it. */
  | 'force-unlocked'
  /** The app is stopping, and the section did not end within the grace period. */
  | 'shutdown';

export type LockEventListener<E extends keyof LockEvents> = (event: LockEvents[E]) => void;

/** Where the core writes what an operator must see. Nest's logger fits. */
export interface LockLogger {
  warn(message: string): void;
  log(message: string): void;
}

/** The same logger, but when it throws, neither the lock nor its holder suffers. */
export const harmless = (logger: LockLogger): LockLogger => {
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
  };
};

/** Delivers events. A listener that throws harms neither the lock nor the next listener. */
export class LockEventHub {
  private readonly listeners = new Map<keyof LockEvents, Set<(event: never) => void>>();

  constructor(private readonly logger: LockLogger) {}

  /** Returns the function that takes the listener off again. */
  on<E extends keyof LockEvents>(event: E, listener: LockEventListener<E>): () => void {
    if (typeof event !== 'string' || !Object.hasOwn(EVENTS, event)) {
      throw new LockConfigurationError(
        `There is no event ${shown(event)}; there are ${Object.keys(EVENTS).join(', ')}.`,
      );
    }
    if (typeof listener !== 'function') {
      throw new LockConfigurationError(
        `The listener of the event ${shown(event)} must be a function, but is ${shown(listener)}.`,
      );
    }
    // A wrapper of its own, so that one function registered twice is taken off once.
    const entry = (payload: LockEvents[E]): void => listener(payload);
    const entries = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, entries.add(entry));
    return () => {
      entries.delete(entry);
      if (entries.size === 0 && this.listeners.get(event) === entries) this.listeners.delete(event);
    };
  }

  /** Builds the event only when somebody listens. */
  emit<E extends keyof LockEvents>(event: E, build: () => LockEvents[E]): void {
    const entries = this.listeners.get(event);
    if (!entries) return;
    const payload = build();
    for (const entry of [...entries]) {
      try {
        const returned: unknown = (entry as LockEventListener<E>)(payload);
        if (returned instanceof Promise) returned.catch((error: unknown) => this.complain(event, error));
      } catch (error) {
        this.complain(event, error);
      }
    }
  }

  private complain(event: string, error: unknown): void {
    this.logger.warn(`A listener for the lock event "${event}" failed: ${textOf(error)}`);
  }
}
