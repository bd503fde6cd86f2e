import { describe, expect, it } from 'vitest';
import { defaultCall, resolveCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import { refusedWith } from '../../support/refusal.js';

const refusalOf = refusedWith(LockConfigurationError);

describe('options of one call', () => {
  const SETTINGS = resolveSettings({
    waitMs: 7,
    leaseMs: 8,
    onLost: 'throw',
    awaitRelease: false,
  });
  const defaults = defaultCall(SETTINGS);
  const callOf = (options: object, over = defaults): LockCall =>
    resolveCall(options, over, 'withLock', SETTINGS);

  it('without any, the options of the module apply; an explicit undefined changes nothing', () => {
    expect(callOf({}, defaults)).toEqual(defaults);
    const none = Object.fromEntries(Object.keys(defaults).map((name) => [name, undefined]));
    expect(callOf(none, defaults)).toEqual(defaults);
  });

  it('watchdogMs is not given together with a fixed lease, and comes before that of the module', () => {
    const message = refusalOf(() => callOf({ watchdogMs: 1_000, leaseMs: 500 }, defaults)).message;
    expect(message).toContain('Both leaseMs and watchdogMs');
    const fixed = { ...defaults, leaseMs: 500 };
    expect(callOf({ watchdogMs: 1_000 }, fixed)).toMatchObject({
      leaseMs: undefined,
      watchdogMs: 1_000,
    });
  });

  it('holdAtLeastMs is at most the fixed lease, also that of the module', () => {
    expect(refusalOf(() => callOf({ holdAtLeastMs: 501, leaseMs: 500 }, defaults)).message).toContain(
      'holdAtLeastMs must be at most leaseMs, which is 500 ms',
    );
    const fixed = { ...defaults, leaseMs: 500 };
    expect(refusalOf(() => callOf({ holdAtLeastMs: 501 }, fixed)).message).toContain('holdAtLeastMs');
    expect(callOf({ holdAtLeastMs: 500 }, fixed)).toMatchObject({ holdAtLeastMs: 500 });
  });

  it('watchdogMs is longer than a renewal may take to come back', () => {
    const settings = { ...SETTINGS, minWatchdogMs: 2_001 };
    expect(resolveCall({ watchdogMs: 2_001 }, defaults, 'withLock', settings).watchdogMs).toBe(2_001);
    expect(
      refusalOf(() => resolveCall({ watchdogMs: 2_000 }, defaults, 'withLock', settings)).message,
    ).toContain('from 2001 to 31622400000 (more than commandTimeoutMs of the store), but is 2000');
  });
});
