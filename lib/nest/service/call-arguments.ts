import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { LockSection } from '../../core/service/lock-manager.js';
import {
  defaultCall,
  resolveCall,
  type AnyCallOptions,
  type CallName,
  type LockCall,
} from '../../core/settings/lock-call.js';
import type { LockSettings } from '../../core/settings/lock-settings.js';

/** The methods that run a section. */
type SectionMethod = 'withLock' | 'tryWithLock' | 'withPermit';

/** Prototypes of nearly all sections: of functions, and of async ones. */
const PLAIN: readonly unknown[] = [Function.prototype, Object.getPrototypeOf(async () => undefined)];

/** Returns the section. Refuses a generator function, since its body would run when it is read, after the section. */
export const checkedSection = <T extends object>(method: string, section: T): T => {
  if (PLAIN.includes(Object.getPrototypeOf(section))) return section;
  if (!/Generator/.test(Object.prototype.toString.call(section))) return section;
  throw new LockConfigurationError(
    `${method} was given a generator function, whose body would run after the ${method === 'withPermit' ? 'permit' : 'lock'}. ` +
      `Put ${method === 'withPermit' ? '@Limited' : '@Locked'} on a method that is one, ` +
      'or read it inside the section.',
  );
};

/** Defaults of the methods of a service: each has its own label. */
export type MethodDefaults = Readonly<
  Record<'withLock' | 'tryWithLock' | 'acquire' | 'tryAcquire' | 'withLocks' | 'permits' | 'lead', LockCall>
>;

/** A leader waits without limit, and leads without limit: the module's defaults are for calls that end. */
export const defaultLead = (settings: LockSettings): LockCall => ({
  ...defaultCall(settings, 'lead'),
  waitMs: Infinity,
  leaseMs: undefined,
  maxHoldMs: Infinity,
});

export const methodDefaults = (settings: LockSettings): MethodDefaults => ({
  withLock: defaultCall(settings, 'withLock'),
  tryWithLock: { ...defaultCall(settings, 'tryWithLock'), waitMs: 0 },
  acquire: defaultCall(settings, 'acquire'),
  tryAcquire: { ...defaultCall(settings, 'tryAcquire'), waitMs: 0 },
  withLocks: defaultCall(settings, 'withLocks'),
  permits: { ...defaultCall(settings, 'permits'), kind: 'permit' },
  lead: defaultLead(settings),
});

/** Returns the resolved options of a call. */
export const callOf = (
  options: AnyCallOptions | undefined,
  defaults: LockCall,
  name: CallName,
  settings: LockSettings,
): LockCall => (options === undefined ? defaults : resolveCall(options, defaults, name, settings));

/** Returns the resolved options and the section of a method that takes the options first, or none. */
export const callAndSection = <T>(
  method: SectionMethod,
  optionsOrSection: AnyCallOptions | LockSection<T> | undefined,
  maybeSection: LockSection<T> | undefined,
  defaults: LockCall,
  settings: LockSettings,
): [LockCall, LockSection<T>] => {
  const inFull = method === 'withPermit' ? 'withPermit(options, fn)' : `${method}(key, options, fn)`;
  if (typeof optionsOrSection === 'function') {
    if (maybeSection === undefined) return [defaults, checkedSection(method, optionsOrSection)];
    throw new LockConfigurationError(`${method} takes its options before the section: ${inFull}.`);
  }
  if (typeof maybeSection !== 'function') {
    throw new LockConfigurationError(`${method} needs a function to run: ${inFull}.`);
  }
  return [callOf(optionsOrSection, defaults, method, settings), checkedSection(method, maybeSection)];
};
