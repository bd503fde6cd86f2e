import type { Lease } from '../lease/lease.js';

/** Kinds of lock that a call may ask for. */
export const LOCK_MODES = ['exclusive', 'fair', 'read', 'write'] as const;
export type LockMode = (typeof LOCK_MODES)[number];

/** Options of one acquisition. Durations are whole ms; `undefined` keeps the default. */
export interface AcquireOptions {
  /**
   * Maximum wait for the lock, in ms. `Infinity`: no limit. 0: one request; if the store does not reply, it ends after
   * the store's command time-out. Default: the module's `waitMs` (5,000); 0 for `tryAcquire`, `tryWithLock`,
   * and with `onBusy: 'skip'`.
   */
  readonly waitMs?: number | undefined;
  /**
   * Length in ms of a fixed lease, which is not renewed. Default: the module's `leaseMs`; without it, the watchdog
   * renews the lease as long as the lock is held. It has no effect on a nested call.
   */
  readonly leaseMs?: number | undefined;
  /**
   * Lease length in ms. It is renewed every `watchdogMs / 3`; the lock of a crashed holder expires after at most
   * `watchdogMs`. Default: the module's `watchdogMs` (30,000). Minimum: 1,000, and more than the module's
   * `commandTimeoutMs`, so that a renewal can be retried. Not together with `leaseMs`. A process hands a lock off only
   * between callers with the same value.
   */
  readonly watchdogMs?: number | undefined;
  /**
   * Minimum time in ms, from the grant, for which the lock stays held after an early finish. Use it so that replicas
   * with different clocks do not run a job twice. The caller does not wait for it, and the lease is not renewed
   * meanwhile; only a forced unlock ends it sooner. At most `leaseMs` if that is given. Default: 0.
   */
  readonly holdAtLeastMs?: number | undefined;
  /**
   * Maximum time in ms for which this call may hold the lock, from its own grant. Use it for work that may hang: the
   * watchdog would renew its lease without end. At the limit `lease.signal` aborts, the event `lost` has the reason
   * `overdue`, and the lease is not renewed any more. Other callers get the lock when the work ends, or else when the
   * lease ends. `extend` does not move the limit. It covers nested calls on the same key; a nested call's own limit has
   * no effect. At least `watchdogMs / 3`, and not together with `leaseMs`. Default: the module's `maxHoldMs` (no limit).
   */
  readonly maxHoldMs?: number | undefined;
  /** Signal that ends the wait with `LockAbortedError`. It does not end a granted lease. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Lease of the section that the call is a part of, or a list of leases. For their keys, and for those of the leases that
   * they are nested in, the call enters the lease without a request to the store; it acquires other keys. A call in a
   * section without it is an ordinary caller, which waits for that section. See `lease.call` for methods with `@Locked`.
   * Default: none.
   */
  readonly inside?: Lease | readonly Lease[] | undefined;
  /**
   * Kind of lock. `'exclusive'`: one holder. `'fair'`: one holder, in the order of the requests, over all processes and
   * Redisson's `RFairLock`. `'read'` and `'write'`: the halves of a read-write lock, many readers or one writer. Callers of
   * one key in different modes exclude each other. Default: `'exclusive'`.
   */
  readonly mode?: LockMode | undefined;
  /**
   * Name of the call for metrics and traces: in events, errors and `held()`, never in the store. Well-formed text of 1 to
   * 100 characters. Use few values: do not put a key or an id into it. Default: the key template of a decorator, or
   * `Class.method` if its key is a function; otherwise the name of the method, such as `withLock`.
   */
  readonly label?: string | undefined;
}

/** Key of a list, with its own mode. */
export interface KeyWithMode {
  readonly key: string;
  /** Mode of this key; see {@link AcquireOptions.mode}. Default: the `mode` of the call. */
  readonly mode?: 'read' | 'write';
}

/** A checked key of a call: with its own mode, or with the mode of the call. */
export type KeyOfCall = string | (KeyWithMode & { readonly mode: 'read' | 'write' });

/** Options of a locked section: `withLock`, `tryWithLock` and `@Locked`. */
export interface SectionOptions extends AcquireOptions {
  /**
   * What to do when the section succeeds but its lock was lost. `event`: keep the result; an event and a log line
   * report the loss. `throw`: throw `LockLostError`. For a stream that a promise returned, only the event reports it.
   * Default: the module's `onLost` (`event`).
   */
  readonly onLost?: 'event' | 'throw' | undefined;
  /**
   * Whether the caller waits for the release. False: it gets its result as soon as the release is sent, and later
   * requests of this service reach the store after it. A failed release is logged and retried; its event comes later,
   * and a shutdown waits for it. A loss that only the release detects is then reported by the event alone, also with
   * `onLost: 'throw'`. Default: the module's `awaitRelease` (true).
   */
  readonly awaitRelease?: boolean | undefined;
  /**
   * Window in ms, from the grant, in which the section succeeds once over all processes. After a success the lock stays
   * held until the window ends, so that further calls find it taken. After an error it is released, and after a crash its
   * lease ends: then the next call runs the section again. The call does not schedule anything, and does not wait: not
   * together with `waitMs`, `leaseMs`, `holdAtLeastMs`, or a function as `onBusy`. Default: no window.
   */
  readonly oncePerMs?: number | undefined;
}

/** Options of `LockService.permits`. */
export interface PermitsOptions {
  /**
   * Number of permits of the key: how many owners may hold one at once. A whole number from 1 to 1,000,000. If callers
   * give different numbers, the last one applies. Default: the number in the store; without one, the call fails.
   */
  readonly permits?: number | undefined;
}

/** Options of one acquisition of a permit. */
export type PermitOptions = Omit<AcquireOptions, 'inside' | 'mode'>;

/** Options of a section under a permit: `withPermit`, and with {@link PermitsOptions} `@Limited`. */
export interface PermitSectionOptions
  extends PermitOptions, Pick<SectionOptions, 'onLost' | 'awaitRelease'> {}

/** Options that have no effect in a call: a variable that contains them does not compile. */
export type Without<Name extends string> = { readonly [name in Name]?: never };
