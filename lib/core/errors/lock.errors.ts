import type { HeldAs } from '../seam/reply.js';
import type { StoreOutcome } from '../seam/store-failure.js';

/** Every code an error of this library can carry. Codes are stable; messages are not. */
export type LockErrorCode =
  | 'LOCK_TAKEN'
  | 'LOCK_QUEUE_FULL'
  | 'LOCK_NOT_REENTRANT'
  | 'LOCK_LOST'
  | 'LOCK_STORE_FAILED'
  | 'LOCK_KEY_INVALID'
  | 'LOCK_CONFIGURATION'
  | 'LOCK_ABORTED'
  | 'LOCK_SHUTDOWN';

// The ESM and the CommonJS build may both be loaded in one process; the brand makes `instanceof` work across.
const BRAND = Symbol.for('nest-redis-lock:error');

interface ErrorClass {
  readonly kind?: string;
}

const lineage = (errorClass: ErrorClass): string[] => {
  const kinds: string[] = [];
  for (let c: ErrorClass = errorClass; c.kind; c = Object.getPrototypeOf(c) as ErrorClass) kinds.push(c.kind);
  return kinds;
};

/** The codes of failures that pass, and that end a call before its work begins. */
const PASSING: ReadonlySet<LockErrorCode> = new Set(['LOCK_TAKEN', 'LOCK_QUEUE_FULL', 'LOCK_SHUTDOWN']);

interface Details {
  key?: string;
  cause?: unknown;
  retryable?: boolean;
}

/** The base of every error this library throws. `cause` holds what was underneath. */
export class LockError extends Error {
  /** @internal Survives minification, unlike the class name. */
  static readonly kind: string = 'LockError';
  readonly code: LockErrorCode;
  /** The key as the caller wrote it; undefined when no key is concerned. */
  readonly key: string | undefined;
  /**
   * True: the work has not begun, and the same call may succeed later. A job queue can delay such a job instead of failing
   * it.
   */
  readonly retryable: boolean;

  constructor(code: LockErrorCode, message: string, options: Details = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.key = options.key;
    this.retryable = options.retryable ?? PASSING.has(code);
    Object.defineProperty(this, 'name', { value: new.target.kind, configurable: true, writable: true });
    Object.defineProperty(this, BRAND, { value: lineage(new.target) });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false;
    const names = (value as Record<symbol, unknown>)[BRAND];
    // A user's own subclass has its parent's `kind`; only the prototype chain can tell it apart.
    if (!Object.hasOwn(this, 'kind')) return Function.prototype[Symbol.hasInstance].call(this, value);
    return Array.isArray(names) && names.includes(this.kind);
  }
}

interface NotAcquired extends Details {
  waitersAhead?: number | undefined;
  heldAs?: HeldAs | undefined;
}

/** The lock could not be had: the wait was over (also for permits or a latch), the queue was full, or nesting is not allowed. */
export class LockNotAcquiredError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockNotAcquiredError';
  /**
   * About how many stood before this caller when it gave up: callers of this process, and the other processes in the
   * store's line, each of which may have several callers. Undefined for one that did not wait, and where that is unknown.
   */
  readonly waitersAhead: number | undefined;
  /**
   * As what somebody has the key, where that is another kind of lock and the store can tell: `read` or `write` of a
   * read-write lock, `fair` of one with a line of its own, `exclusive` of a plain one. Undefined for a lock like the one
   * that was asked for.
   */
  readonly heldAs?: HeldAs;

  constructor(code: LockErrorCode, message: string, options: NotAcquired = {}) {
    super(code, message, options);
    this.waitersAhead = options.waitersAhead;
    if (options.heldAs) this.heldAs = options.heldAs;
  }
}

/**
 * Makes the stack of an error that ends a wait lead to the caller. Such an error may come from a timer, the listener of a
 * signal or another caller's request. V8 finds the caller from a place that the caller awaits.
 */
export const withStackFromHere = (error: unknown): unknown => {
  if (error instanceof LockError) Error.captureStackTrace(error, withStackFromHere);
  return error;
};

/** Whether a lock was not had because others have it: the caller may try again, or leave the work to them. */
export const isTaken = (error: unknown): error is LockNotAcquiredError =>
  error instanceof LockNotAcquiredError && error.code !== 'LOCK_NOT_REENTRANT';

/** The lease ended before its holder released it, so the work may have overlapped with somebody else's. */
export class LockLostError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockLostError';
}

/** The store failed. It says nothing about whether the key is taken. */
export class LockStoreError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockStoreError';

  constructor(
    message: string,
    /**
     * `not-executed`: certainly nothing happened. `unknown`: it may have, and the library is undoing it; what was asked of
     * a semaphore or a latch nobody can undo.
     */
    readonly outcome: StoreOutcome,
    options: Details = {},
  ) {
    super('LOCK_STORE_FAILED', message, options);
  }
}

/** The key cannot be rendered or used. The method did not run. */
export class LockKeyError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockKeyError';

  constructor(message: string, options: Details = {}) {
    super('LOCK_KEY_INVALID', message, options);
  }
}

/** The library is set up or called in a way that cannot work. */
export class LockConfigurationError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockConfigurationError';

  constructor(message: string, options: Details = {}) {
    super('LOCK_CONFIGURATION', message, options);
  }
}

/** The wait was given up: the caller's signal aborted (`LOCK_ABORTED`) or the app is stopping (`LOCK_SHUTDOWN`). */
export class LockAbortedError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockAbortedError';
}
