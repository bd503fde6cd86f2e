import { expect } from 'vitest';
import type { AcquireOptions, LockMode, SectionOptions } from '../../../lib/core/settings/acquire-options.js';
import type { DecoratorOptions, LimitedOptions } from '../../../lib/locked/locked.options.js';
import type { LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { watched } from '../../support/core/core-under-test.js';
import { settled } from '../../support/core/virtual-runtime.js';
import { isLockable } from './good-keys.js';
import type { VirtualLocks } from './virtual-locks.js';

/** What an option takes according to the README, and what the locks then do. */
export interface Meaning {
  readonly allows: (value: unknown) => boolean;
  /** Some that have to be accepted, so that none of this is ever said of nothing. */
  readonly examples: readonly unknown[];
  /** What applies when it is not given. */
  readonly otherwise: unknown;
  /** Fails unless the locks do what the value says. `options` are those of the calls; they may be empty. */
  readonly verify: (world: VirtualLocks, options: SectionOptions, value: never) => Promise<void>;
}

const A_YEAR_MS = 366 * 24 * 3_600_000;
const AN_HOUR_MS = 3_600_000;
const WATCHDOG_MS = 30_000;

const isWholeMs =
  (min: number) =>
  (value: unknown): boolean =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= A_YEAR_MS;

const isOneOf =
  (...choices: readonly unknown[]) =>
  (value: unknown): boolean =>
    choices.includes(value);

const isHeld = async (world: VirtualLocks): Promise<boolean> => (await world.locks.inspect('k')) !== null;

const waitMs: Meaning = {
  allows: (value) => value === Infinity || isWholeMs(0)(value),
  examples: [0, 1, 5_000, A_YEAR_MS, Infinity],
  otherwise: 5_000,
  verify: async (world, options, ms: number) => {
    const free = world.takeElsewhere('k');
    const waiting = watched(world.locks.acquire('k', options as AcquireOptions));
    // A waiter refreshes its queue entry each second: a year of that takes minutes, also on a virtual clock.
    const isOver = ms <= AN_HOUR_MS;
    await world.runtime.pass(isOver ? Math.max(0, ms - 1) : AN_HOUR_MS);
    expect(waiting.state).toBe(ms === 0 ? 'rejected' : 'pending');
    if (!isOver) free();
    await world.runtime.pass(2);
    if (isOver) expect(waiting.error).toMatchObject({ code: 'LOCK_TAKEN' });
    else expect(waiting.state).toBe('fulfilled');
  },
};

const leaseMs: Meaning = {
  allows: isWholeMs(1),
  examples: [1, 30_000, A_YEAR_MS],
  otherwise: undefined,
  verify: async (world, options, ms: number | undefined) => {
    const lease = await world.locks.acquire('k', options as AcquireOptions);
    expect(lease.remainingMs()).toBe(ms ?? world.settings.watchdogMs);
    await world.runtime.pass((ms ?? 3 * WATCHDOG_MS) - 1);
    expect([await isHeld(world), lease.lost]).toEqual([true, false]);
    await world.runtime.pass(1);
    expect([await isHeld(world), lease.lost]).toEqual(ms === undefined ? [true, false] : [false, true]);
  },
};

const reentrant: Meaning = {
  allows: isOneOf(true, false),
  examples: [true, false],
  otherwise: true,
  verify: async ({ locks }, options, allowed: boolean) => {
    const inner = locks.withLock('k', () => locks.withLock('k', options, () => 'ran'));
    if (allowed) expect(await inner).toBe('ran');
    else await expect(inner).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
  },
};

const watchdogMs: Meaning = {
  allows: isWholeMs(1_000),
  examples: [1_000, 30_000, A_YEAR_MS],
  otherwise: WATCHDOG_MS,
  verify: async (world, options, ms: number) => {
    const lease = await world.locks.acquire('k', options as AcquireOptions);
    expect(lease.remainingMs()).toBe(ms);
    await world.runtime.pass(3 * ms);
    expect(lease.remainingMs()).toBeGreaterThan(ms / 2);
  },
};

const onLost: Meaning = {
  allows: isOneOf('event', 'throw'),
  examples: ['event', 'throw'],
  otherwise: 'event',
  verify: async ({ locks }, options, choice: 'event' | 'throw') => {
    const work = locks.withLock('k', options, async () => {
      await locks.forceUnlock('k');
      return 'done';
    });
    if (choice === 'event') expect(await work).toBe('done');
    else await expect(work).rejects.toMatchObject({ code: 'LOCK_LOST' });
  },
};

const awaitRelease: Meaning = {
  allows: isOneOf(true, false),
  examples: [true, false],
  otherwise: true,
  verify: async (world, options, waits: boolean) => {
    const { locks } = world;
    const reply = world.holdUpReleases();
    const work = watched(locks.withLock('k', options, () => 'done'));
    await settled();
    expect(work.state).toBe(waits ? 'pending' : 'fulfilled');
    expect(locks.usage.leases).toBe(1);
    reply();
    await settled();
    expect([work.value, locks.usage.leases]).toEqual(['done', 0]);
  },
};

/** Options of one call. That of the signal is in a spec of its own. */
export const CALL_OPTIONS: Readonly<Record<Exclude<keyof SectionOptions, 'signal'>, Meaning>> = {
  waitMs,
  leaseMs,
  reentrant,
  onLost,
  awaitRelease,
  watchdogMs,
  mode: {
    allows: isOneOf('exclusive', 'fair', 'read', 'write'),
    examples: ['exclusive', 'fair', 'read', 'write'],
    otherwise: 'exclusive',
    verify: async ({ locks }, options, mode: LockMode) => {
      await locks.withLock('k', options, async () => {
        expect((await locks.inspect('k'))?.kind).toBe(mode);
      });
    },
  },
  holdAtLeastMs: {
    allows: isWholeMs(0),
    examples: [0, 1, 30_000, A_YEAR_MS],
    otherwise: 0,
    verify: async (world, options, ms: number) => {
      expect(await world.locks.withLock('k', options, () => 'done')).toBe('done');
      await world.runtime.pass(Math.max(0, ms - 1));
      expect(await isHeld(world)).toBe(ms > 0);
      await world.runtime.pass(1);
      expect(await isHeld(world)).toBe(false);
    },
  },
};

/** Options of a call for a permit. What those do that locks have, too, is the same code. */
export const PERMIT_OPTIONS: Readonly<
  Record<
    Exclude<keyof LimitedOptions, 'signal' | keyof DecoratorOptions>,
    Pick<Meaning, 'allows' | 'examples'>
  >
> = {
  waitMs: CALL_OPTIONS.waitMs,
  leaseMs: CALL_OPTIONS.leaseMs,
  watchdogMs: CALL_OPTIONS.watchdogMs,
  holdAtLeastMs: CALL_OPTIONS.holdAtLeastMs,
  onLost: CALL_OPTIONS.onLost,
  awaitRelease: CALL_OPTIONS.awaitRelease,
  permits: {
    allows: (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 1_000_000,
    examples: [1, 2, 3, 1_000_000],
  },
};

/** Options of a module that concern the locks. */
export const MODULE_OPTIONS: Readonly<Record<keyof LockSettingsInput, Meaning>> = {
  waitMs,
  leaseMs,
  reentrant,
  onLost,
  awaitRelease,
  keyPrefix: {
    allows: (value) => typeof value === 'string' && !/\p{Surrogate}/u.test(value),
    examples: ['', 'lock:', '<<x>>', '__proto__', 'ключ:😀'],
    otherwise: 'lock:',
    verify: async ({ locks, space }, _options, prefix: string) => {
      const taking = locks.acquire('k');
      // A brace of the prefix may find its other half in a key, so only the whole can be refused.
      if (!isLockable(`${prefix}k`))
        return expect(taking).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
      await taking;
      expect(space.inspect(`${prefix}k`)).not.toBeNull();
    },
  },
  watchdogMs,
  maxWaiters: {
    allows: (value) => value === Infinity || (Number.isInteger(value) && (value as number) >= 0),
    examples: [0, 1, 20, Infinity],
    otherwise: Infinity,
    verify: async ({ locks, runtime }, _options, max: number) => {
      await locks.acquire('k');
      const waiting = Array.from({ length: 30 }, () => watched(locks.acquire('k', { waitMs: Infinity })));
      await runtime.pass(0);
      const refused = waiting.filter(({ state }) => state === 'rejected');
      expect(waiting.length - refused.length).toBeCloseTo(Math.min(max, waiting.length));
      for (const { error } of refused) expect(error).toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    },
  },
  fencing: {
    allows: isOneOf(true, false, 'redisson'),
    examples: [true, false, 'redisson'],
    otherwise: true,
    verify: async ({ locks }, _options, on: boolean | 'redisson') => {
      const lease = await locks.acquire('k');
      if (on === 'redisson') expect(lease.fencingToken).toBe(1);
      else if (on) expect(Number.isSafeInteger(lease.fencingToken)).toBe(true);
      else expect(() => lease.fencingToken).toThrow('fencing is off');
    },
  },
  shutdownGraceMs: {
    allows: isWholeMs(0),
    examples: [0, 1, 10_000, A_YEAR_MS],
    otherwise: 10_000,
    verify: async ({ manager, locks, runtime }, _options, ms: number) => {
      // Renewing it for a year would take as many steps as there are renewals.
      const lease = await locks.acquire('k', { leaseMs: A_YEAR_MS });
      const closing = watched(manager.shutDown());
      await runtime.pass(Math.max(0, ms - 1));
      expect(closing.state).toBe(ms === 0 ? 'fulfilled' : 'pending');
      await runtime.pass(1);
      expect(closing.state).toBe('fulfilled');
      expect(lease.lost).toBe(true);
    },
  },
};
