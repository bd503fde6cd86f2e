import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import {
  defaultCall,
  DEFAULT_SETTINGS,
  resolveCall,
  resolveSettings,
} from '../../../lib/core/settings/lock-settings.js';
import { checkMs } from '../../../lib/core/settings/option-checks.js';

const refusalOf = (action: () => unknown): LockConfigurationError => {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigurationError);
    return error as LockConfigurationError;
  }
  throw new Error('nothing was refused');
};

const NO_DURATIONS: readonly unknown[] = [
  -1,
  -0.5,
  0.5,
  NaN,
  -Infinity,
  '1000',
  '',
  null,
  true,
  false,
  {},
  [],
  [1_000],
  1n,
  new Date(),
  () => 1,
  Number.MAX_SAFE_INTEGER + 1,
  2 ** 63,
];

describe('settings of the module', () => {
  it('without any, the defaults of the documentation apply', () => {
    expect(resolveSettings({})).toEqual({
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
    });
  });

  it('an explicit undefined keeps the default', () => {
    const none = Object.fromEntries(Object.keys(DEFAULT_SETTINGS).map((name) => [name, undefined]));
    expect(resolveSettings(none)).toEqual(DEFAULT_SETTINGS);
  });

  it('what is given is taken, at its limits too', () => {
    const given = {
      keyPrefix: '',
      waitMs: Infinity,
      leaseMs: 1,
      watchdogMs: 1_000,
      maxWaiters: 0,
      onLost: 'throw',
      reentrant: false,
      fencing: false,
      shutdownGraceMs: 0,
    } as const;
    expect(resolveSettings(given)).toEqual({ ...given, excludes: true });
  });

  const DURATIONS = ['waitMs', 'leaseMs', 'watchdogMs', 'shutdownGraceMs'] as const;

  it.each(DURATIONS)('%s refuses what is no duration, by name', (name) => {
    for (const value of NO_DURATIONS) {
      const { message, code } = refusalOf(() => resolveSettings({ [name]: value }));
      expect(message).toContain(name);
      expect(message).toContain('milliseconds');
      expect(code).toBe('LOCK_CONFIGURATION');
    }
  });

  it.each(['leaseMs', 'watchdogMs', 'shutdownGraceMs'])(
    '%s refuses Infinity: only a wait may have no end',
    (name) => {
      expect(refusalOf(() => resolveSettings({ [name]: Infinity })).message).toContain(name);
    },
  );

  it.each([
    ['leaseMs', 0],
    ['watchdogMs', 0],
    ['watchdogMs', 999],
    ['keyPrefix', 7],
    ['keyPrefix', null],
    ['maxWaiters', -1],
    ['maxWaiters', 1.5],
    ['maxWaiters', NaN],
    ['maxWaiters', '10'],
    ['maxWaiters', null],
    ['onLost', 'ignore'],
    ['onLost', null],
    ['reentrant', 'yes'],
    ['reentrant', 1],
    ['fencing', 0],
    ['fencing', null],
  ])('%s refuses %j, by name', (name, value) => {
    const { message } = refusalOf(() => resolveSettings({ [name]: value }));
    expect(message).toContain(name);
    expect(message).toContain(String(value));
  });

  it('shows a string in quotes, so that "1000" is not mistaken for a number', () => {
    expect(refusalOf(() => resolveSettings({ waitMs: '1000' as never })).message).toContain('"1000"');
  });
});

describe('options of one call', () => {
  const defaults = defaultCall(resolveSettings({ waitMs: 7, leaseMs: 8, onLost: 'throw', reentrant: false }));

  it('without any, those of the module apply; an explicit undefined changes nothing', () => {
    expect(resolveCall({}, defaults)).toEqual(defaults);
    const none = Object.fromEntries(Object.keys(defaults).map((name) => [name, undefined]));
    expect(resolveCall(none, defaults)).toEqual(defaults);
  });

  it('what is given is taken', () => {
    const { signal } = new AbortController();
    const given = {
      waitMs: Infinity,
      leaseMs: 10,
      signal,
      reentrant: true,
      onLost: 'event',
      holdAtLeastMs: 9,
    } as const;
    expect(resolveCall(given, defaults)).toEqual({
      ...given,
      kind: 'exclusive',
      permits: undefined,
      watchdogMs: defaults.watchdogMs,
    });
    expect(resolveCall({ watchdogMs: 1_000 }, defaults)).toMatchObject({
      leaseMs: undefined,
      watchdogMs: 1_000,
    });
  });

  it('watchdogMs is not given together with a fixed lease, and comes before that of the module', () => {
    const message = refusalOf(() => resolveCall({ watchdogMs: 1_000, leaseMs: 500 }, defaults)).message;
    expect(message).toContain('Both leaseMs and watchdogMs');
    const fixed = { ...defaults, leaseMs: 500 };
    expect(resolveCall({ watchdogMs: 1_000 }, fixed)).toMatchObject({
      leaseMs: undefined,
      watchdogMs: 1_000,
    });
  });

  it('holdAtLeastMs is at most the fixed lease, also that of the module', () => {
    expect(refusalOf(() => resolveCall({ holdAtLeastMs: 501, leaseMs: 500 }, defaults)).message).toContain(
      'holdAtLeastMs must be at most leaseMs, which is 500 ms',
    );
    const fixed = { ...defaults, leaseMs: 500 };
    expect(refusalOf(() => resolveCall({ holdAtLeastMs: 501 }, fixed)).message).toContain('holdAtLeastMs');
    expect(resolveCall({ holdAtLeastMs: 500 }, fixed)).toMatchObject({ holdAtLeastMs: 500 });
  });

  it.each(['waitMs', 'leaseMs', 'holdAtLeastMs'])('%s refuses what is no duration, by name', (name) => {
    for (const value of NO_DURATIONS) {
      expect(refusalOf(() => resolveCall({ [name]: value }, defaults)).message).toContain(name);
    }
  });

  it.each([
    ['leaseMs', 0],
    ['leaseMs', Infinity],
    ['holdAtLeastMs', Infinity],
    ['onLost', 'log'],
    ['reentrant', 'no'],
    ['signal', null],
    ['signal', {}],
    ['signal', true],
  ])('%s refuses %j, by name', (name, value) => {
    expect(refusalOf(() => resolveCall({ [name]: value }, defaults)).message).toContain(name);
  });

  it('a signal of another realm or library counts: it is asked for what it can, not for its class', () => {
    const foreign = {
      aborted: false,
      addEventListener: () => undefined,
      removeEventListener: () => undefined,
    };
    expect(resolveCall({ signal: foreign as unknown as AbortSignal }, defaults).signal).toBe(foreign);
  });
});

describe('checkMs', () => {
  it('lets through whole numbers of its range, and nothing else', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const fits = typeof value === 'number' && Number.isInteger(value) && value >= 3 && value <= 9;
        if (fits || value === undefined) expect(checkMs('x', value, { min: 3, max: 9 })).toBe(value);
        else expect(() => checkMs('x', value, { min: 3, max: 9 })).toThrow(LockConfigurationError);
      }),
    );
  });
});
