import { LEAST_WATCHDOG_MS, checkMaxHold } from './lease-terms.js';
import { checkChoice, checkCount, checkMs, checkText, invalidOption } from './option-checks.js';

/** Whether grants have fencing tokens, and from which counter. */
export type Fencing = boolean | 'redisson';

/** Settings of one service instance, checked and with defaults. */
export interface LockSettings {
  readonly keyPrefix: string;
  readonly waitMs: number;
  /** Length in ms of a fixed lease; undefined: the watchdog renews. */
  readonly leaseMs: number | undefined;
  readonly watchdogMs: number;
  /** Minimum `watchdogMs` of a call, in ms: a renewal has to complete before the lease ends. */
  readonly minWatchdogMs: number;
  /** Maximum time of a hold in ms; `Infinity`: no limit. */
  readonly maxHoldMs: number;
  readonly maxWaiters: number;
  readonly onLost: 'event' | 'throw';
  readonly awaitRelease: boolean;
  readonly fencing: Fencing;
  readonly shutdownGraceMs: number;
  /** Wait in ms after which the event `waiting` is emitted; `Infinity`: never. */
  readonly slowWaitMs: number;
  /** Time of a hold in ms after which the event `slow-hold` is emitted; `Infinity`: never. */
  readonly slowHoldMs: number;
  /** Name of the app for others; undefined: the name in its package.json. */
  readonly appName: string | undefined;
  readonly holderInfo: boolean;
  /** Returns a key as logs, errors and events show it; undefined: as it is. */
  readonly redactKey: ((key: string) => string) | undefined;
  /** False only in tests without locks: every acquisition then gets its own key. */
  readonly excludes: boolean;
  /** Limit of every wait in ms, whatever its call says; less than `Infinity` only in tests. See `WaitCap`. */
  readonly maxWaitMs: number;
}

/** Settings that an app gives. Durations are whole ms; `undefined` keeps the default. */
export interface LockSettingsInput {
  /** Prefix of every key in the store. Use `''` to share names with Java services. Default: `lock:`. */
  readonly keyPrefix?: string | undefined;
  /** Maximum wait for a lock, in ms; `Infinity`: no limit. Default: 5,000. */
  readonly waitMs?: number | undefined;
  /** Length in ms of a fixed lease, which is not renewed. Default: none; the watchdog renews the lease. */
  readonly leaseMs?: number | undefined;
  /**
   * Lease length in ms. It is renewed every `watchdogMs / 3`; the lock of a crashed holder expires after at most
   * `watchdogMs`. Minimum: 1,000. Default: 30,000.
   */
  readonly watchdogMs?: number | undefined;
  /**
   * Maximum time in ms for which a call may hold a lock whose lease is renewed; see the option of calls. At least
   * `watchdogMs / 3`. Default: no limit.
   */
  readonly maxHoldMs?: number | undefined;
  /**
   * Maximum number of callers of this process that wait for one key, not counting the caller that holds it or talks to
   * the store. A further caller is rejected at once. Default: no limit.
   */
  readonly maxWaiters?: number | undefined;
  /**
   * What to do when a section succeeds but its lock was lost: keep the result (`event`), or throw `LockLostError`
   * (`throw`). Default: `event`.
   */
  readonly onLost?: 'event' | 'throw' | undefined;
  /** Whether callers of sections wait for the release. Default: true. */
  readonly awaitRelease?: boolean | undefined;
  /**
   * Whether every grant of an exclusive lock has a fencing token. With `'redisson'` the tokens come from the counter of
   * Redisson's `RFencedLock`, shared with Java services that take the same locks. Do not mix tokens of the two kinds
   * for one resource. Default: true.
   */
  readonly fencing?: Fencing | undefined;
  /** Time in ms that running sections have when the app stops. Default: 10,000. */
  readonly shutdownGraceMs?: number | undefined;
  /**
   * Wait in ms after which a caller counts as slow: event `waiting`, and a debug log. `Infinity`: never. Default: 1,000.
   */
  readonly slowWaitMs?: number | undefined;
  /**
   * Time in ms after which a hold counts as slow: event `slow-hold`, and a debug log. `Infinity`: never. Default:
   * `Infinity`.
   */
  readonly slowHoldMs?: number | undefined;
  /**
   * Name of this app, by which other processes show the holder of a lock. At most 100 characters. Default: the name in the
   * nearest `package.json` above the script; none without that file.
   */
  readonly appName?: string | undefined;
  /**
   * Whether errors, events, `inspect()` and `list()` show the process that holds a lock, and whether this process writes a
   * record of itself for that. Default: true.
   */
  readonly holderInfo?: boolean | undefined;
  /**
   * Function that returns a key as logs, errors and events show it, for keys with personal data. It gets the key without
   * the prefix. If it throws, or returns no text, `[redacted]` is shown. Values that you ask for, such as `lease.key` and
   * `locks.held()`, have the real key. Default: keys are shown as they are.
   *
   * @example redactKey: (key) => key.replace(/user:[^:]+/, 'user:***')
   */
  readonly redactKey?: ((key: string) => string) | undefined;
}

/** Default time-out of one request to a store, in ms. */
export const DEFAULT_COMMAND_TIMEOUT_MS = 2_000;

export const DEFAULT_SETTINGS: LockSettings = {
  keyPrefix: 'lock:',
  waitMs: 5_000,
  leaseMs: undefined,
  watchdogMs: 30_000,
  minWatchdogMs: LEAST_WATCHDOG_MS,
  maxHoldMs: Infinity,
  maxWaiters: Infinity,
  onLost: 'event',
  awaitRelease: true,
  fencing: true,
  shutdownGraceMs: 10_000,
  slowWaitMs: 1_000,
  slowHoldMs: Infinity,
  appName: undefined,
  holderInfo: true,
  redactKey: undefined,
  excludes: true,
  maxWaitMs: Infinity,
};

const SLOW = { min: 1, infinite: true };

/** A module may have a fixed lease beside the others, which are for calls with a renewed lease. */
const termsOfModule = (
  input: LockSettingsInput,
): Pick<LockSettings, 'leaseMs' | 'watchdogMs' | 'maxHoldMs'> => {
  const { watchdogMs: byDefault, minWatchdogMs: min } = DEFAULT_SETTINGS;
  const leaseMs = checkMs('leaseMs', input.leaseMs, { min: 1 });
  const watchdogMs = checkMs('watchdogMs', input.watchdogMs, { min }) ?? byDefault;
  return { leaseMs, watchdogMs, maxHoldMs: checkMaxHold(input.maxHoldMs, watchdogMs) ?? Infinity };
};

export const resolveSettings = (input: LockSettingsInput): LockSettings => {
  const { keyPrefix, redactKey } = input;
  if (keyPrefix !== undefined && typeof keyPrefix !== 'string')
    invalidOption('keyPrefix', 'a string', keyPrefix);
  // Redis would store U+FFFD for half a surrogate pair, so two prefixes could become one.
  if (keyPrefix?.isWellFormed() === false) invalidOption('keyPrefix', 'well-formed UTF-16', keyPrefix);
  if (redactKey !== undefined && typeof redactKey !== 'function')
    invalidOption('redactKey', 'a function that returns a text', redactKey);
  const d = DEFAULT_SETTINGS;
  return {
    keyPrefix: keyPrefix ?? d.keyPrefix,
    waitMs: checkMs('waitMs', input.waitMs, { infinite: true }) ?? d.waitMs,
    ...termsOfModule(input),
    minWatchdogMs: d.minWatchdogMs,
    maxWaiters: checkCount('maxWaiters', input.maxWaiters) ?? d.maxWaiters,
    onLost: checkChoice('onLost', input.onLost, ['event', 'throw'] as const) ?? d.onLost,
    awaitRelease: checkChoice('awaitRelease', input.awaitRelease, [true, false]) ?? d.awaitRelease,
    fencing: checkChoice('fencing', input.fencing, [true, false, 'redisson'] as const) ?? d.fencing,
    shutdownGraceMs: checkMs('shutdownGraceMs', input.shutdownGraceMs) ?? d.shutdownGraceMs,
    slowWaitMs: checkMs('slowWaitMs', input.slowWaitMs, SLOW) ?? d.slowWaitMs,
    slowHoldMs: checkMs('slowHoldMs', input.slowHoldMs, SLOW) ?? d.slowHoldMs,
    appName: checkText('appName', input.appName, 100),
    holderInfo: checkChoice('holderInfo', input.holderInfo, [true, false]) ?? d.holderInfo,
    redactKey,
    excludes: d.excludes,
    maxWaitMs: d.maxWaitMs,
  };
};
