import { isArray } from '../util/describe.js';
import type { LockKind } from '../kinds/kinds.js';
import { Lease } from '../lease/lease.js';
import {
  LOCK_MODES,
  type AcquireOptions,
  type PermitOptions,
  type PermitSectionOptions,
  type PermitsOptions,
  type SectionOptions,
} from './acquire-options.js';
import { checkLabel } from './label.js';
import { leaseTermsOf, type LeaseTerms } from './lease-terms.js';
import type { LockSettings } from './lock-settings.js';
import { checkChoice, checkMs, checkObject, reading, invalidOption } from './option-checks.js';
import { checkNames, type Names } from './option-names.js';
import { namesOf } from './option-table.js';

/** Options of one acquisition, checked and with defaults. */
export interface LockCall extends LeaseTerms {
  readonly kind: LockKind;
  /** Number of permits; undefined for locks, and if the store has the number. */
  readonly permits: number | undefined;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Leases that the caller has proven the call to be inside of. */
  readonly inside: readonly Lease[];
  readonly onLost: 'event' | 'throw';
  readonly awaitRelease: boolean;
  readonly label: string;
  /** Whether the error for a taken key shows its holder: not for `onBusy`. */
  readonly showsHolder: boolean;
}

/** Mark of options whose caller handles a taken key by itself. It travels through a `LockService` that an app replaces. */
const HANDLES_TAKEN = Symbol.for('nest-redis-lock:handles-taken');

/** Marks the options of a call whose caller handles a taken key by itself. Tests that compare options do not see it. */
export const handlingTaken = <O extends object>(options: O, isMarked = true): O =>
  isMarked ? Object.defineProperty({ ...options }, HANDLES_TAKEN, { value: true }) : options;

export const handlesTaken = (options: object): boolean => HANDLES_TAKEN in options;

const NONE: readonly Lease[] = [];

/** The call that marked options stand for, with the defaults that it was made with. */
const resolved = new WeakMap<object, { defaults: LockCall; call: LockCall } | undefined>();

/** Marks frozen options without accessors, which many calls use: they are checked once for each service. */
export const usedAgain = <O extends object>(options: O): O => {
  resolved.set(options, undefined);
  return options;
};

/** @param label label of the method's calls */
export const defaultCall = (settings: LockSettings, label = 'withLock'): LockCall => ({
  kind: 'exclusive',
  permits: undefined,
  waitMs: settings.waitMs,
  leaseMs: settings.leaseMs,
  watchdogMs: settings.watchdogMs,
  maxHoldMs: settings.maxHoldMs,
  oncePerMs: undefined,
  signal: undefined,
  inside: NONE,
  onLost: settings.onLost,
  awaitRelease: settings.awaitRelease,
  holdAtLeastMs: 0,
  showsHolder: true,
  label,
});

const doNothing = (): void => undefined;

/** Returns true for a signal of any realm or polyfill. A Proxy may throw when it is read. */
export const isSignal = (value: unknown): value is AbortSignal => {
  if (typeof value !== 'object' || value === null) return false;
  try {
    const signal = value as AbortSignal;
    // A method that throws is found here, instead of in the middle of a wait.
    signal.addEventListener('abort', doNothing);
    signal.removeEventListener('abort', doNothing);
    return typeof signal.aborted === 'boolean';
  } catch {
    return false;
  }
};

const ACQUIRE_NAMES = namesOf('lock', 'inside') satisfies Names<AcquireOptions>;
const SECTION_NAMES = namesOf('lock', 'inside', 'section', 'once') satisfies Names<SectionOptions>;
const PERMIT_NAMES = namesOf('permit') satisfies Names<PermitOptions>;

/** Names of the options of each method, and of the section of a decorator. */
const CALL_NAMES = {
  acquire: ACQUIRE_NAMES,
  tryAcquire: ACQUIRE_NAMES,
  withLock: SECTION_NAMES,
  tryWithLock: SECTION_NAMES,
  withLocks: namesOf('lock', 'section'),
  lead: namesOf('lead'),
  permits: namesOf('number') satisfies Names<PermitsOptions>,
  withPermit: namesOf('permit', 'section') satisfies Names<PermitSectionOptions>,
  'permits().acquire': PERMIT_NAMES,
  'permits().tryAcquire': PERMIT_NAMES,
  '@Limited': namesOf('permit', 'section', 'number'),
};

/** More than any caller needs. */
const MAX_PERMITS = 1_000_000;

const checkPermits = (value: unknown): number | undefined => {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_PERMITS)
    return value;
  return invalidOption('permits', `a whole number from 1 to ${MAX_PERMITS}`, value);
};

export type CallName = keyof typeof CALL_NAMES;

export type AnyCallOptions = SectionOptions & PermitSectionOptions & PermitsOptions;

/**
 * Returns the options of a call, with defaults.
 *
 * @throws LockConfigurationError naming the invalid or unknown option
 */
export const resolveCall = (
  options: AnyCallOptions,
  defaults: LockCall,
  name: CallName,
  settings: LockSettings,
): LockCall => {
  const known = resolved.get(options);
  if (known?.defaults === defaults) return known.call;
  const call = reading('options', () => readCall(options, defaults, name, settings));
  if (resolved.has(options)) resolved.set(options, { defaults, call });
  return call;
};

/** Refuses readers: many of them hold a key at once, so a window would keep none of them out. */
export const checkOnceMode = (kind: LockKind): void => {
  if (kind !== 'read') return;
  invalidOption('mode', 'exclusive, fair or write with oncePerMs, since many readers hold at once', kind);
};

/** Checks the other options of a call with `oncePerMs`, which neither waits nor shares. */
const checkOnce = (kind: LockKind, waitMs: number | undefined): void => {
  checkOnceMode(kind);
  if (waitMs !== undefined && waitMs !== 0) {
    invalidOption('waitMs', 'left out with oncePerMs, which does not wait for the end of the window', waitMs);
  }
};

/** Returns the members of a list, also of its holes. What cannot be read is no list. */
const membersOf = (value: unknown): readonly unknown[] => {
  try {
    return isArray(value) ? Array.from<unknown>(value) : [value];
  } catch {
    return [value];
  }
};

/** Returns the leases that prove a call to be nested. */
const checkInside = (value: unknown): readonly Lease[] => {
  if (value === undefined) return NONE;
  return membersOf(value).map((lease) => {
    if (!Lease.isLease(lease)) {
      return invalidOption(
        'inside',
        'a lease, or a list of leases (of withLocks: lease.of(service, key))',
        lease,
      );
    }
    lease.mustTakeNested('inside');
    return lease;
  });
};

const EXAMPLES: Partial<Record<CallName, string>> = { permits: 'permits: 3', lead: 'watchdogMs: 10_000' };

const exampleFor = (name: CallName): string => `an object such as { ${EXAMPLES[name] ?? 'waitMs: 2_000'} }`;

const readCall = (
  options: AnyCallOptions,
  defaults: LockCall,
  name: CallName,
  { minWatchdogMs }: LockSettings,
): LockCall => {
  checkObject('options', exampleFor(name), options);
  checkNames(options, name, CALL_NAMES[name]);
  const { signal } = options;
  if (signal !== undefined && !isSignal(signal)) invalidOption('signal', 'an AbortSignal', signal);
  const terms = leaseTermsOf(options, defaults, minWatchdogMs);
  const kind = checkChoice('mode', options.mode, LOCK_MODES) ?? defaults.kind;
  const waitMs = checkMs('waitMs', options.waitMs, { infinite: true });
  const isOnce = terms.oncePerMs !== undefined;
  if (isOnce) checkOnce(kind, waitMs);
  // The shape of `defaultCall`: V8 then knows one, and adding to a copy is slow on Node 20.
  return {
    kind,
    permits: checkPermits(options.permits) ?? defaults.permits,
    waitMs: isOnce ? 0 : (waitMs ?? defaults.waitMs),
    leaseMs: terms.leaseMs,
    watchdogMs: terms.watchdogMs,
    maxHoldMs: terms.maxHoldMs,
    oncePerMs: terms.oncePerMs,
    signal,
    inside: checkInside(options.inside),
    onLost: checkChoice('onLost', options.onLost, ['event', 'throw'] as const) ?? defaults.onLost,
    awaitRelease: checkChoice('awaitRelease', options.awaitRelease, [true, false]) ?? defaults.awaitRelease,
    holdAtLeastMs: terms.holdAtLeastMs,
    showsHolder: !handlesTaken(options),
    label: checkLabel(options.label, defaults.label),
  };
};
