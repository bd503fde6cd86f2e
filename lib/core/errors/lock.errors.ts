import type { LockHolder } from '../seam/process-record.js';
import type { HeldAs } from '../seam/reply.js';
import type { StoreOutcome } from '../seam/store-failure.js';

/** Code of an error. Codes are stable; messages are not. */
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

/** Codes of temporary failures that end a call before its work begins. */
const PASSING: ReadonlySet<LockErrorCode> = new Set(['LOCK_TAKEN', 'LOCK_QUEUE_FULL', 'LOCK_SHUTDOWN']);

interface Details {
  key?: string;
  cause?: unknown;
  retryable?: boolean;
}

/** Base class of all errors of this library. `cause` holds the underlying error. */
export class LockError extends Error {
  /** @internal Survives minification, unlike the class name. */
  static readonly kind: string = 'LockError';
  readonly code: LockErrorCode;
  /** Key as the caller wrote it; undefined when no key is concerned. */
  readonly key: string | undefined;
  /**
   * Label of the call, in `LockNotAcquiredError`, `LockAbortedError`, `LockLostError` and `LockStoreError`. Undefined where
   * no call for a lock or a permit is concerned.
   */
  readonly label: string | undefined;
  /**
   * Whether the same call may succeed later; the work has not begun. A job queue can then delay the job instead of
   * failing it.
   */
  readonly retryable: boolean;

  constructor(code: LockErrorCode, message: string, options: Details = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.key = options.key;
    this.label = undefined;
    this.retryable = options.retryable ?? PASSING.has(code);
    Object.defineProperty(this, 'name', { value: new.target.kind, configurable: true, writable: true });
  }
}

interface NotAcquired extends Details {
  waitersAhead?: number | undefined;
  heldAs?: HeldAs | undefined;
}

/**
 * The lock was not acquired: the wait timed out (also for permits or a latch), the queue was full, or the call cannot
 * nest.
 */
export class LockNotAcquiredError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockNotAcquiredError';
  /**
   * Approximate number of waiters before this caller when it gave up: callers of this process, and other processes in
   * the store's wait queue, each of which may have several callers. Undefined when it is unknown, and for callers that
   * did not wait.
   */
  readonly waitersAhead: number | undefined;
  /**
   * Kind of the lock that holds the key, if it is another kind and the store can tell. `read` and `write` are halves of
   * a read-write lock; `fair` is a lock with `mode: 'fair'`; `exclusive` is a plain lock. Undefined for a lock of the
   * requested kind. `foreign` is a lock of another library; see the option `foreignHold`.
   */
  readonly heldAs?: HeldAs;
  /**
   * Service that holds the key, found within 50 ms. Undefined when it is unknown, for semaphores and latches, with
   * `holderInfo: false`, and for `onBusy`. HTTP replies never have it.
   */
  readonly holder?: LockHolder;
  /**
   * Estimated time in ms until the lock is free for this caller: a median hold time, times the callers before this one.
   * The median is of the last holds of this process with the same label. Undefined when nothing was measured, for calls
   * by hand without the option `label`, for semaphores and latches, and for `onBusy`.
   */
  readonly retryAfterMs?: number;
  /**
   * True when a section of the caller's asynchronous context holds the key. If the call is a part of that section, it waited
   * for itself. If it is a task of a queue that runs in the section's context, it waited in its turn. The message says what to
   * do. The interceptor logs each such error.
   */
  readonly heldAround?: true;

  constructor(code: LockErrorCode, message: string, options: NotAcquired = {}) {
    super(code, message, options);
    this.waitersAhead = options.waitersAhead;
    if (options.heldAs) this.heldAs = options.heldAs;
  }
}

/** Sets what is found out only for an error that its caller gets. */
export const withAdvice = (
  error: LockNotAcquiredError,
  holder: LockHolder | undefined,
  retryAfterMs: number | undefined,
): void => {
  Object.assign(error, holder && { holder }, retryAfterMs !== undefined && { retryAfterMs });
};

/**
 * Replaces the stack of an error with one that leads to the caller. The error may come from a timer, a listener of a
 * signal, or another caller's request. V8 finds the caller from a place that the caller awaits.
 */
export const withStackFromHere = (error: unknown): unknown => {
  if (error instanceof LockError) Error.captureStackTrace(error, withStackFromHere);
  return error;
};

/** Adds the label of the call to an error of the library; any other value passes as it is. */
export const withLabel = <E>(error: E, label: string): E => {
  if (error instanceof LockError) (error as { label: string | undefined }).label = label;
  return error;
};

/** Returns true when the lock is held by others: the caller may try again, or leave the work to them. */
export const isTaken = (error: unknown): error is LockNotAcquiredError =>
  error instanceof LockNotAcquiredError && error.code !== 'LOCK_NOT_REENTRANT';

/** Why a lease was lost. */
export type LossReason =
  /** The lease ended before it could be renewed. */
  | 'expired'
  /** The store reported at a renewal or release that the hold is gone. */
  | 'refused'
  /** The store reported then that another client acquired a lock of another kind on the same key. */
  | 'entered'
  /** Its caller held it for `maxHoldMs`. The store has it until the lease ends, so that the work can stop. */
  | 'overdue'
  /** `forceUnlock` in this process ended it. */
  | 'force-unlocked'
  /** The app is stopping, and the section did not end within the grace period. */
  | 'shutdown';

/** Why a leadership ended. */
export type LeadershipEnd =
  /** Its lock was lost. With `shutdown`, the app is stopping, and the lock is released in time. */
  | LossReason
  /** The leader called `resign()`. */
  | 'resigned'
  /** The app called `stop()` of the candidate. */
  | 'stopped'
  /** The function of the candidate rejected. */
  | 'rejected';

interface Lost extends Details {
  reason: LockLostError['reason'];
}

/** The lease ended before its holder released it. Its work may have overlapped with the work of another holder. */
export class LockLostError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockLostError';
  /**
   * Why the lease was lost. `outer-release`: the enclosing lease of a nested call was released by hand. `fenced`:
   * `fenceTransaction` found the token of a later holder in the database.
   */
  readonly reason: LossReason | 'outer-release' | 'fenced';

  constructor(code: LockErrorCode, message: string, options: Lost) {
    super(code, message, options);
    this.reason = options.reason;
  }
}

interface StoreFailed extends Details {
  reason?: LockStoreError['reason'];
}

/** The store failed, or could not be asked. It says nothing about whether the key is taken. */
export class LockStoreError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockStoreError';
  /**
   * `overloaded`: this process asks for more than the store serves, or the store has not replied for a moment, so the request
   * was never sent. Undefined when the store failed.
   */
  readonly reason?: 'overloaded';

  constructor(
    message: string,
    /**
     * Whether the request was executed. `not-executed`: certainly not. `unknown`: perhaps; the library releases what it
     * may have acquired, but cannot undo a request to a semaphore or a latch.
     */
    readonly outcome: StoreOutcome,
    options: StoreFailed = {},
  ) {
    super('LOCK_STORE_FAILED', message, options);
    if (options.reason) this.reason = options.reason;
  }
}

interface InvalidKey extends Details {
  clientPlaceholder?: string;
}

/** The key cannot be rendered or used. The method did not run. */
export class LockKeyError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockKeyError';
  /**
   * Placeholder whose value the HTTP client sent, such as `<<req.query.id>>`, when that value cannot be part of a
   * key. HTTP clients then get 400. Undefined for a mistake in the code.
   */
  readonly clientPlaceholder?: string;

  constructor(message: string, options: InvalidKey = {}) {
    super('LOCK_KEY_INVALID', message, options);
    if (options.clientPlaceholder !== undefined) this.clientPlaceholder = options.clientPlaceholder;
  }
}

/** The library is configured or called in a way that cannot work. */
export class LockConfigurationError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockConfigurationError';

  constructor(message: string, options: Details = {}) {
    super('LOCK_CONFIGURATION', message, options);
  }
}

/**
 * The wait was aborted by the caller's signal (`LOCK_ABORTED`), or rejected because the app is stopping
 * (`LOCK_SHUTDOWN`). It is also the reason of a leadership's `signal` that ended without a loss of its lock.
 */
export class LockAbortedError extends LockError {
  /** @internal */
  static override readonly kind: string = 'LockAbortedError';
}
