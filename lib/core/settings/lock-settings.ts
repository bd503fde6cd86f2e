import { LockConfigurationError } from '../errors/lock.errors.js';
import type { LockKind } from '../kinds/kinds.js';
import type {
  AcquireOptions,
  PermitOptions,
  PermitSectionOptions,
  SectionOptions,
} from './acquire-options.js';
import { checkChoice, checkCount, checkMs, reading, refuse } from './option-checks.js';
import { checkNames, type Names } from './option-names.js';
import { isArray } from '../errors/describe.js';

/** What applies to every lock of one service instance, resolved and checked. */
export interface LockSettings {
  readonly keyPrefix: string;
  readonly waitMs: number;
  /** Undefined: the watchdog. */
  readonly leaseMs: number | undefined;
  readonly watchdogMs: number;
  readonly maxWaiters: number;
  readonly onLost: 'event' | 'throw';
  readonly reentrant: boolean;
  readonly fencing: boolean;
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
  /** Whether a call may take again what it holds already. Default: true. */
  readonly reentrant?: boolean;
  /** Whether every grant carries a fencing token. Default: true. */
  readonly fencing?: boolean;
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
  reentrant: true,
  fencing: true,
  shutdownGraceMs: true,
};

export const DEFAULT_SETTINGS: LockSettings = {
  keyPrefix: 'lock:',
  waitMs: 5_000,
  leaseMs: undefined,
  watchdogMs: 30_000,
  maxWaiters: Infinity,
  onLost: 'event',
  reentrant: true,
  fencing: true,
  shutdownGraceMs: 10_000,
  excludes: true,
};

const MIN_WATCHDOG_MS = 1_000;

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
    watchdogMs: checkMs('watchdogMs', input.watchdogMs, { min: MIN_WATCHDOG_MS }) ?? d.watchdogMs,
    maxWaiters: checkCount('maxWaiters', input.maxWaiters) ?? d.maxWaiters,
    onLost: checkChoice('onLost', input.onLost, ['event', 'throw'] as const) ?? d.onLost,
    reentrant: checkChoice('reentrant', input.reentrant, [true, false]) ?? d.reentrant,
    fencing: checkChoice('fencing', input.fencing, [true, false]) ?? d.fencing,
    shutdownGraceMs: checkMs('shutdownGraceMs', input.shutdownGraceMs) ?? d.shutdownGraceMs,
    excludes: d.excludes,
  };
};

/** One acquisition's options, resolved and checked. */
export interface LockCall {
  readonly kind: LockKind;
  /** Of a permit: how many there are. */
  readonly permits: number | undefined;
  readonly waitMs: number;
  readonly leaseMs: number | undefined;
  /** The lease that is renewed when none is fixed. */
  readonly watchdogMs: number;
  readonly signal: AbortSignal | undefined;
  readonly reentrant: boolean;
  readonly onLost: 'event' | 'throw';
  readonly holdAtLeastMs: number;
}

export const defaultCall = (settings: LockSettings): LockCall => ({
  kind: 'exclusive',
  permits: undefined,
  waitMs: settings.waitMs,
  leaseMs: settings.leaseMs,
  watchdogMs: settings.watchdogMs,
  signal: undefined,
  reentrant: settings.reentrant,
  onLost: settings.onLost,
  holdAtLeastMs: 0,
});

/** Of whatever realm or polyfill; a Proxy may throw at any look. */
const isSignal = (value: unknown): value is AbortSignal => {
  if (typeof value !== 'object' || value === null) return false;
  try {
    const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignal>;
    return (
      typeof aborted === 'boolean' &&
      typeof addEventListener === 'function' &&
      typeof removeEventListener === 'function'
    );
  } catch {
    return false;
  }
};

const ACQUIRE_NAMES: Names<AcquireOptions> = {
  waitMs: true,
  leaseMs: true,
  watchdogMs: true,
  holdAtLeastMs: true,
  signal: true,
  reentrant: true,
};

/** The options of a section, by name. */
export const SECTION_NAMES: Names<SectionOptions> = { ...ACQUIRE_NAMES, onLost: true };

const PERMIT_NAMES: Names<PermitOptions> = {
  waitMs: true,
  leaseMs: true,
  watchdogMs: true,
  holdAtLeastMs: true,
  signal: true,
  permits: true,
};

/** The options of a section under a permit, by name. */
export const PERMIT_SECTION_NAMES: Names<PermitSectionOptions> = { ...PERMIT_NAMES, onLost: true };

/** Every way to ask for a lock or a permit, and the options it takes. */
const CALL_NAMES = {
  acquire: ACQUIRE_NAMES,
  tryAcquire: ACQUIRE_NAMES,
  withLock: SECTION_NAMES,
  tryWithLock: SECTION_NAMES,
  acquirePermit: PERMIT_NAMES,
  tryAcquirePermit: PERMIT_NAMES,
  withPermit: PERMIT_SECTION_NAMES,
};

/** More than anybody can mean. */
const MOST_PERMITS = 1_000_000;

const checkPermits = (value: unknown): number | undefined => {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MOST_PERMITS)
    return value;
  return refuse('permits', `a whole number from 1 to ${MOST_PERMITS}`, value);
};

/** A call that takes options, by its name. */
export type CallName = keyof typeof CALL_NAMES;

type AnyCallOptions = SectionOptions & PermitSectionOptions;

/**
 * Puts a call's options over the defaults. Throws `LockConfigurationError` naming the option that is wrong, or that
 * the call does not have.
 */
export const resolveCall = (
  options: AnyCallOptions,
  defaults: LockCall,
  name: CallName = 'withLock',
): LockCall => reading('options', () => readCall(options, defaults, name));

const readCall = (options: AnyCallOptions, defaults: LockCall, name: CallName): LockCall => {
  if (typeof options !== 'object' || options === null || isArray(options)) {
    refuse('options', 'an object such as { waitMs: 2_000 }', options);
  }
  checkNames(options, name, CALL_NAMES[name]);
  const { signal } = options;
  if (signal !== undefined && !isSignal(signal)) refuse('signal', 'an AbortSignal', signal);
  const watchdogMs = checkMs('watchdogMs', options.watchdogMs, { min: MIN_WATCHDOG_MS });
  const fixedMs = checkMs('leaseMs', options.leaseMs, { min: 1 });
  if (watchdogMs !== undefined && fixedMs !== undefined) {
    throw new LockConfigurationError(
      'Both leaseMs and watchdogMs are given. A fixed lease is not renewed: keep the one that is meant.',
    );
  }
  // A caller that names the lease to renew does not mean the module's fixed one.
  const leaseMs = fixedMs ?? (watchdogMs === undefined ? defaults.leaseMs : undefined);
  const holdAtLeastMs = checkMs('holdAtLeastMs', options.holdAtLeastMs) ?? defaults.holdAtLeastMs;
  if (leaseMs !== undefined && holdAtLeastMs > leaseMs) {
    refuse('holdAtLeastMs', `at most leaseMs, which is ${leaseMs} ms and not renewed`, holdAtLeastMs);
  }
  return {
    kind: defaults.kind,
    permits: checkPermits(options.permits) ?? defaults.permits,
    waitMs: checkMs('waitMs', options.waitMs, { infinite: true }) ?? defaults.waitMs,
    leaseMs,
    watchdogMs: watchdogMs ?? defaults.watchdogMs,
    signal,
    reentrant: checkChoice('reentrant', options.reentrant, [true, false]) ?? defaults.reentrant,
    onLost: checkChoice('onLost', options.onLost, ['event', 'throw'] as const) ?? defaults.onLost,
    holdAtLeastMs,
  };
};
