import { checkChoice, checkCount, checkMs, refuse } from './option-checks.js';
import type { Names } from './option-names.js';

/** Whether grants carry fencing tokens, and of which series. */
export type Fencing = boolean | 'redisson';

/** What applies to every lock of one service instance, resolved and checked. */
export interface LockSettings {
  readonly keyPrefix: string;
  readonly waitMs: number;
  /** Undefined: the watchdog. */
  readonly leaseMs: number | undefined;
  readonly watchdogMs: number;
  /** The shortest lease to renew that a call may ask for: a renewal has to come back before it is over. */
  readonly leastWatchdogMs: number;
  readonly maxWaiters: number;
  readonly onLost: 'event' | 'throw';
  readonly awaitRelease: boolean;
  readonly reentrant: boolean;
  readonly fencing: Fencing;
  readonly shutdownGraceMs: number;
  /** False only in tests without locks: every acquisition then gets a key of its own. */
  readonly excludes: boolean;
}

/** The same, as a user gives it. Durations are whole milliseconds; `undefined` keeps the default. */
export interface LockSettingsInput {
  /** Put before every key. Default: `lock:`. Use `''` to share names with Java services. */
  readonly keyPrefix?: string;
  /** How long callers wait for a lock. Default: 5,000. `Infinity` waits without end. */
  readonly waitMs?: number;
  /** A fixed lease that is not renewed. Default: none; the watchdog renews. */
  readonly leaseMs?: number;
  /**
   * The lease the watchdog renews, three times within its length. A crashed holder's lock is free after at most
   * this long. Default: 30,000; at least 1,000.
   */
  readonly watchdogMs?: number;
  /**
   * How many callers of this process may wait for one key behind the one whose turn it is: who has it, or asks the
   * store for it. One more is refused at once. Default: no limit.
   */
  readonly maxWaiters?: number;
  /** Default for sections that end after their lock was lost. Default: `event`. */
  readonly onLost?: 'event' | 'throw';
  /** Default for sections: whether their caller waits for the answer to the release. Default: true. */
  readonly awaitRelease?: boolean;
  /** Whether a call may take again what it holds already. Default: true. */
  readonly reentrant?: boolean;
  /**
   * Whether every grant of an exclusive lock carries a fencing token. Default: true. With `'redisson'` the tokens are those
   * of Redisson's `RFencedLock`, one series with Java services that take the same locks: never for a resource that has
   * seen tokens of the other kind.
   */
  readonly fencing?: Fencing;
  /** How long running sections may go on when the app stops. Default: 10,000. */
  readonly shutdownGraceMs?: number;
}

/** The settings by name. */
export const SETTING_NAMES: Names<LockSettingsInput> = {
  keyPrefix: true,
  waitMs: true,
  leaseMs: true,
  watchdogMs: true,
  maxWaiters: true,
  onLost: true,
  awaitRelease: true,
  reentrant: true,
  fencing: true,
  shutdownGraceMs: true,
};

export const DEFAULT_SETTINGS: LockSettings = {
  keyPrefix: 'lock:',
  waitMs: 5_000,
  leaseMs: undefined,
  watchdogMs: 30_000,
  leastWatchdogMs: 1_000,
  maxWaiters: Infinity,
  onLost: 'event',
  awaitRelease: true,
  reentrant: true,
  fencing: true,
  shutdownGraceMs: 10_000,
  excludes: true,
};

export const resolveSettings = (input: LockSettingsInput): LockSettings => {
  const { keyPrefix } = input;
  if (keyPrefix !== undefined && typeof keyPrefix !== 'string') refuse('keyPrefix', 'a string', keyPrefix);
  // Redis would see U+FFFD, and so would another prefix with another half.
  if (keyPrefix?.isWellFormed() === false) refuse('keyPrefix', 'well-formed UTF-16', keyPrefix);
  const d = DEFAULT_SETTINGS;
  return {
    keyPrefix: keyPrefix ?? d.keyPrefix,
    waitMs: checkMs('waitMs', input.waitMs, { infinite: true }) ?? d.waitMs,
    leaseMs: checkMs('leaseMs', input.leaseMs, { min: 1 }),
    watchdogMs: checkMs('watchdogMs', input.watchdogMs, { min: d.leastWatchdogMs }) ?? d.watchdogMs,
    leastWatchdogMs: d.leastWatchdogMs,
    maxWaiters: checkCount('maxWaiters', input.maxWaiters) ?? d.maxWaiters,
    onLost: checkChoice('onLost', input.onLost, ['event', 'throw'] as const) ?? d.onLost,
    awaitRelease: checkChoice('awaitRelease', input.awaitRelease, [true, false]) ?? d.awaitRelease,
    reentrant: checkChoice('reentrant', input.reentrant, [true, false]) ?? d.reentrant,
    fencing: checkChoice('fencing', input.fencing, [true, false, 'redisson'] as const) ?? d.fencing,
    shutdownGraceMs: checkMs('shutdownGraceMs', input.shutdownGraceMs) ?? d.shutdownGraceMs,
    excludes: d.excludes,
  };
};
