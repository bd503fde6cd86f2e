import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import { DEFAULT_SETTINGS, resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { checkMs } from '../../../lib/core/settings/option-checks.js';
import { NO_DURATIONS } from '../../support/core/no-durations.js';
import { refusedWith } from '../../support/refusal.js';

const refusalOf = refusedWith(LockConfigurationError);

describe('settings of the module', () => {
  it('without any, the defaults of the documentation apply', () => {
    expect(resolveSettings({})).toEqual({
      keyPrefix: 'lock:',
      waitMs: 5_000,
      leaseMs: undefined,
      watchdogMs: 30_000,
      minWatchdogMs: 1_000,
      maxWaiters: Infinity,
      onLost: 'event',
      awaitRelease: true,
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
      awaitRelease: false,
      reentrant: false,
      fencing: false,
      shutdownGraceMs: 0,
    } as const;
    expect(resolveSettings(given)).toEqual({ ...given, minWatchdogMs: 1_000, excludes: true });
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
    ['awaitRelease', 0],
    ['awaitRelease', null],
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
