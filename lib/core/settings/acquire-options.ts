/** The kinds of lock that a call may ask for. */
export const LOCK_MODES = ['exclusive', 'fair', 'read', 'write'] as const;
export type LockMode = (typeof LOCK_MODES)[number];

/** Options of one acquisition. Durations are whole milliseconds; an explicit `undefined` keeps the default. */
export interface AcquireOptions {
  /**
   * How long to wait for the lock, in ms. Default: the module's `waitMs` (5,000); 0 for `tryAcquire`, `tryWithLock`
   * and with `onBusy: 'skip'`. `Infinity` waits without end. 0 asks once: with a store that does not
   * answer it still ends after the command time-out.
   */
  readonly waitMs?: number;
  /**
   * A fixed lease in ms, which is not renewed. Default: the module's `leaseMs`, and without that the watchdog
   * keeps the lock for as long as it is held. Inside a lock already held by the caller it is not applied.
   */
  readonly leaseMs?: number;
  /**
   * The lease the watchdog renews, in ms. Default: the module's `watchdogMs` (30,000). A crashed holder's lock is free
   * after at most this long. At least 1,000, and more than the `commandTimeoutMs` of the module, so that a renewal can
   * be tried again; not together with `leaseMs`. Callers of one process pass the lock on only to those with the same
   * value.
   */
  readonly watchdogMs?: number;
  /**
   * After an early finish the hold stays until this many ms after the grant, without renewal, so that replicas whose
   * clocks differ do not run a job twice. The caller does not wait for that; only a forced unlock ends it sooner. With
   * a fixed `leaseMs` it may not be longer than that. Default: 0.
   */
  readonly holdAtLeastMs?: number;
  /** Ends the wait with `LockAbortedError`. It does not end a lease that was granted. */
  readonly signal?: AbortSignal;
  /**
   * False makes taking a lock that the caller already holds an immediate `LockNotAcquiredError`. Default: the module's
   * (true).
   */
  readonly reentrant?: boolean;
  /**
   * The kind of lock. `'exclusive'`: one holder. `'fair'`: one holder, in the order in which callers came, over all processes
   * and Redisson's `RFairLock`. `'read'` and `'write'`: the halves of a read-write lock, many readers or one writer.
   * Callers with one key in different modes exclude each other, except readers. Default: `'exclusive'`.
   */
  readonly mode?: LockMode;
}

/** One key of several, with a mode of its own. */
export interface KeyWithMode {
  readonly key: string;
  /** As {@link AcquireOptions.mode}, for this key. Default: as the call takes keys without a mode of their own. */
  readonly mode?: 'read' | 'write';
}

/** A key of a call, as it was checked: with a mode of its own, or as the call takes it. */
export type KeyOfCall = string | (KeyWithMode & { readonly mode: 'read' | 'write' });

/** Options of a locked section: `withLock`, `tryWithLock` and `@Locked`. */
export interface SectionOptions extends AcquireOptions {
  /**
   * What happens when the section succeeds after its lock was lost. `event`: the result stands, the loss is an event
   * and a log line. `throw`: `LockLostError`. Who has got a stream from a promise hears it by the event. Default: the
   * module's (`event`).
   */
  readonly onLost?: 'event' | 'throw';
  /**
   * Whether the caller waits for the answer to the release. False: it has the result, or the error, as soon as the
   * section has ended and the release is sent; what this service asks next comes to the store behind that. A release
   * that fails is logged and tried again, as ever; its event comes later, and a shutdown waits for it. With
   * `onLost: 'throw'` a loss that only the release would tell of is told by the event alone. Default: the module's
   * (true).
   */
  readonly awaitRelease?: boolean;
}

/** Options of `LockService.permits`. */
export interface PermitsOptions {
  /**
   * How many callers may hold a permit at once: a whole number from 1 to 1,000,000. Where callers give different numbers,
   * the last one decides. Default: the number that the store has for the key; without one there, the call fails.
   */
  readonly permits?: number;
}

/** Options of one acquisition of a permit. */
export interface PermitOptions extends Omit<AcquireOptions, 'reentrant' | 'mode'> {}

/** Options of a section under a permit: `withPermit`, and with {@link PermitsOptions} `@Limited`. */
export interface PermitSectionOptions
  extends PermitOptions, Pick<SectionOptions, 'onLost' | 'awaitRelease'> {}

/** Options of other calls, which would do nothing here: a variable that has them does not compile. */
export type Without<Name extends string> = { readonly [name in Name]?: never };
