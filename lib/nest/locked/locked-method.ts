import { isTaken, LockConfigurationError, type LockNotAcquiredError } from '../../core/errors/lock.errors.js';
import type { Lease } from '../../core/lease/lease.js';
import type { LockSection } from '../../core/service/lock-manager.js';
import { handlingTaken, usedAgain } from '../../core/settings/lock-call.js';
import type { KeyOfCall } from '../../core/settings/acquire-options.js';
import type { LockService } from '../service/lock.service.js';
import type { DecoratorName } from './check-use.js';
import type { LimitedOptions, LockedOptions } from './locked.options.js';

export type AnyMethod = (this: unknown, ...args: unknown[]) => unknown;

/** Calls a locked method. `inside`: lease that the call is proven to be inside of. */
export type CallLocked = (self: unknown, args: unknown[], inside: Lease | undefined) => unknown;

/** Options of both decorators, without those that the decorator handles itself. */
export type CallOptions = Omit<LockedOptions & LimitedOptions, 'onBusy' | 'service'> & {
  readonly inside?: Lease;
};

/** Runs a section under a lock (`@Locked`) or a permit (`@Limited`). */
export type RunSection = (
  locks: LockService,
  keys: readonly KeyOfCall[],
  options: CallOptions,
  section: LockSection<void>,
) => Promise<void>;

/** What the wrapper of a locked method needs. */
export interface LockedMethodSpec {
  readonly decorator: DecoratorName;
  readonly run: RunSection;
  readonly original: AnyMethod;
  /** `Class.method`, for messages. */
  readonly where: string;
  readonly options: LockedOptions & LimitedOptions;
  /** Returns the options of one call, as they were checked. */
  optionsOf(self: unknown, args: readonly unknown[]): CallOptions;
  keysOf(locks: LockService, args: unknown[], self: unknown): readonly KeyOfCall[];
  /** Returns the service of an instance; throws without one. */
  serviceOf(instance: unknown): LockService;
  /** Returns the signal that ends the wait when the client disconnects, for Nest's call of an HTTP handler. */
  callSignal(self: unknown): AbortSignal | undefined;
  /** Registers an Observable that the client is reading; returns a function to call at its end. */
  streamBegins(): (() => void) | undefined;
}

/**
 * Returns the options of all calls. `onBusy: 'skip'` does not wait, so only `waitMs: 0` may be given with it.
 *
 * @param defaultLabel label of a method without the option
 */
export const callOptions = (
  { onBusy, service: _service, ...options }: LockedOptions & LimitedOptions,
  defaultLabel: string,
): CallOptions => {
  const { label = defaultLabel, waitMs } = options;
  const skips = onBusy === 'skip' && waitMs === undefined;
  const call = handlingTaken({ ...options, label, ...(skips && { waitMs: 0 }) }, onBusy !== undefined);
  return usedAgain(Object.freeze(call));
};

/** Marks the options of a method with `onBusy`, which handles a taken key by itself. */
export const withTakenHandled = ({ options: { onBusy } }: LockedMethodSpec, call: CallOptions): CallOptions =>
  handlingTaken(call, onBusy !== undefined);

/** Returns the options of one call. */
export const optionsNow = (
  spec: LockedMethodSpec,
  self: unknown,
  args: readonly unknown[],
  inside: Lease | undefined,
): CallOptions => {
  const options = spec.optionsOf(self, args);
  return optionsInside(spec, options, inside, options.signal ?? spec.callSignal(self));
};

/** Returns the options of one call that is proven inside of a lease, or of none. */
export const optionsInside = (
  spec: LockedMethodSpec,
  options: CallOptions,
  inside: Lease | undefined,
  signal = options.signal,
): CallOptions => {
  if (!inside && signal === options.signal) return options;
  return withTakenHandled(spec, { ...options, ...(signal && { signal }), ...(inside && { inside }) });
};

/** Returns true when the method's own lock is taken, false when the error comes from a lock inside its body. */
export const isBusy = (error: unknown, started: boolean): error is LockNotAcquiredError =>
  !started && isTaken(error);

/**
 * Returns the error for a lock that was granted without running the body: only a mock does that, and returning
 * undefined would hide it.
 */
export const notRun = (spec: LockedMethodSpec): LockConfigurationError =>
  new LockConfigurationError(
    `${spec.where} is ${spec.decorator}, but its LockService did not run it: it is a mock. In tests import ` +
      `RedisLockTestingModule from 'nest-redis-lock/testing'.`,
  );

/** Returns the error for a stream from a method with `oncePerMs`: its reader may leave at any time. */
export const streamRefused = (where: string): LockConfigurationError =>
  new LockConfigurationError(
    `${where}: a method with oncePerMs must return a Promise, because a stream does not tell whether the work succeeded. ` +
      'Make it async, and let it return its result.',
  );
