import { expect } from 'vitest';
import { getLockServiceToken, LockNotAcquiredError, type LockHolder } from 'nest-redis-lock';
import { MemorySpace, MemoryStore } from 'nest-redis-lock/testing';
import type { LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { watched } from '../../support/core/core-under-test.js';
import { SECTION } from './calls.table.js';
import { isLockable } from './good-keys.js';
import {
  A_YEAR_MS,
  aFunction,
  choice,
  isEmptyObject,
  isWhole,
  ms,
  NO_WHOLE_NUMBERS,
  whole,
  type Option,
} from './option.js';
import { KEY, type VirtualLocks } from './virtual-locks.js';

const SLOW = {
  is: `${ms(1).is}, or Infinity`,
  allows: (value: unknown) => value === Infinity || isWhole(value, 1, A_YEAR_MS),
  examples: [1, 250, A_YEAR_MS, Infinity],
  wrong: [...NO_WHOLE_NUMBERS, 0, A_YEAR_MS + 1],
};

const slowEvents = ({ locks }: VirtualLocks, event: 'waiting' | 'slow-hold'): readonly unknown[] => {
  const events: unknown[] = [];
  locks.on(event, (one) => void events.push(one));
  return events;
};

/** Returns the holder that the error for a taken key shows. */
const holderShown = async (locks: VirtualLocks['locks']): Promise<LockHolder | undefined> => {
  await locks.acquire(KEY);
  const error = await locks.acquire(KEY, { waitMs: 0 }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(LockNotAcquiredError);
  return (error as LockNotAcquiredError).holder;
};

/** How a function shows the key, if it shows it. */
const shownBy = (redactKey: ((key: string) => unknown) | undefined): string => {
  if (redactKey === undefined) return KEY;
  try {
    const text = redactKey(KEY);
    if (typeof text === 'string' && text !== '') return text;
  } catch {
    // The key is not shown.
  }
  return '[redacted]';
};

const { waitMs, leaseMs, watchdogMs, maxHoldMs, onLost, awaitRelease } = SECTION;

export const SETTINGS = {
  ...{ waitMs, leaseMs, watchdogMs, maxHoldMs, onLost, awaitRelease },
  keyPrefix: {
    allows: (value) => typeof value === 'string' && !/\p{Surrogate}/u.test(value),
    examples: ['', 'lock:', '<<x>>', '__proto__', 'ключ:😀'],
    wrong: [7, null, '\ud800'],
    otherwise: 'lock:',
    does: async ({ world, run }, prefix: string) => {
      const finalKey = `${prefix}${KEY}`;
      const held = run(() => world.space.inspect(finalKey) !== null);
      // A brace of the prefix may find its other half in a key, so only the whole can be refused.
      if (isLockable(finalKey)) expect(await held).toBe(true);
      else await expect(held).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    },
  },
  maxWaiters: {
    is: 'a whole number, or Infinity',
    allows: (value) => value === Infinity || isWhole(value, 0, Infinity),
    examples: [0, 1, 20, Infinity],
    wrong: [...NO_WHOLE_NUMBERS, -1],
    otherwise: Infinity,
    does: async ({ world: { locks, runtime } }, max: number) => {
      await locks.acquire(KEY);
      const waiting = Array.from({ length: 30 }, () => watched(locks.acquire(KEY, { waitMs: Infinity })));
      await runtime.pass(0);
      const refused = waiting.filter(({ state }) => state === 'rejected');
      expect(waiting.length - refused.length).toBeCloseTo(Math.min(max, waiting.length));
      for (const { error } of refused) expect(error).toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    },
  },
  fencing: {
    ...choice(true, false, 'redisson'),
    otherwise: true,
    does: async ({ world: { locks } }, fencing: boolean | 'redisson') => {
      const lease = await locks.acquire(KEY);
      if (fencing === 'redisson') expect(lease.fencingToken).toBe(1);
      else if (fencing) expect(lease.fencingToken).toBeGreaterThan(1);
      else expect(() => lease.fencingToken).toThrow('fencing is off');
    },
  },
  shutdownGraceMs: {
    ...ms(0),
    otherwise: 10_000,
    does: async ({ world: { manager, locks, runtime } }, graceMs: number) => {
      // Renewing it for a year would take as many steps as there are renewals.
      const lease = await locks.acquire(KEY, { leaseMs: A_YEAR_MS });
      const closing = watched(manager.shutDown());
      await runtime.pass(Math.max(0, graceMs - 1));
      expect(closing.state).toBe(graceMs === 0 ? 'fulfilled' : 'pending');
      await runtime.pass(1);
      expect([closing.state, lease.lost]).toEqual(['fulfilled', true]);
    },
  },
  slowWaitMs: {
    ...SLOW,
    otherwise: 1_000,
    does: async ({ world }, slowMs: number) => {
      const { locks, runtime } = world;
      const events = slowEvents(world, 'waiting');
      await locks.acquire(KEY, { leaseMs: A_YEAR_MS });
      void watched(locks.acquire(KEY, { waitMs: Infinity, leaseMs: A_YEAR_MS }));
      await runtime.pass(Math.min(slowMs, A_YEAR_MS) - 1);
      expect(events).toEqual([]);
      await runtime.pass(1);
      // At the last moment it gets the lock.
      expect(events).toHaveLength(slowMs >= A_YEAR_MS ? 0 : 1);
    },
  },
  slowHoldMs: {
    ...SLOW,
    otherwise: Infinity,
    does: async ({ world }, slowMs: number) => {
      const { locks, runtime } = world;
      const events = slowEvents(world, 'slow-hold');
      await locks.acquire(KEY, { leaseMs: A_YEAR_MS });
      await runtime.pass(Math.min(slowMs, A_YEAR_MS) - 1);
      expect(events).toEqual([]);
      await runtime.pass(1);
      // At that moment the lease is over, too.
      expect(events).toHaveLength(slowMs >= A_YEAR_MS ? 0 : 1);
    },
  },
  appName: {
    is: 'well-formed text of 1 to 100 characters',
    allows: (value) =>
      typeof value === 'string' && value !== '' && value.length <= 100 && value.isWellFormed(),
    examples: ['shop', 'ä'.repeat(100)],
    wrong: ['', 'x'.repeat(101), '\ud800', 7, null],
    does: async ({ world: { locks } }, appName: string) => {
      expect((await holderShown(locks))?.appName).toBe(appName);
    },
  },
  holderInfo: {
    ...choice(true, false),
    otherwise: true,
    does: async ({ world: { locks } }, holderInfo: boolean) => {
      expect((await holderShown(locks))?.instanceId).toBe(holderInfo ? locks.instanceId : undefined);
    },
  },
  redactKey: {
    ...aFunction('a function that returns a text'),
    examples: [(key: string) => `${key.length} characters`, () => '-'],
    does: async ({ world: { locks } }, redactKey: ((key: string) => unknown) | undefined) => {
      const keys: string[] = [];
      locks.on('acquired', ({ key }) => void keys.push(key));
      await locks.acquire(KEY);
      expect(keys).toEqual([shownBy(redactKey)]);
    },
  },
} satisfies Record<keyof LockSettingsInput, Option>;

const STORE = new MemoryStore();

/** Options of a module that do not concern the locks. test/nest shows what the interceptor does. */
export const MODULE = {
  name: {
    is: 'a string',
    allows: (value) => typeof value === 'string',
    examples: ['', 'billing', '__proto__'],
    wrong: [7, null],
    does: ({ module }, name: string | undefined) =>
      expect(module!.exports).toContain(getLockServiceToken(name)),
  },
  store: {
    is: 'a LockStore, such as new RedisStore({ redis })',
    allows: (value) => value === STORE,
    examples: [STORE],
    wrong: [
      ...[MemoryStore, {}, { kinds: {} }],
      Object.create(STORE, { kinds: { value: {} } }),
      Object.create(STORE, { kinds: { value: { exclusive: { acquire: 7 } } } }),
      Object.create(STORE, { inspect: { value: 7 } }),
    ],
    required: true,
    does: ({ module }, store: unknown) => expect(module!.store).toBe(store),
  },
  context: {
    ...aFunction('a function that returns an object'),
    does: ({ module }, context: unknown) => expect(module!.context === context).toBe(true),
  },
  leaders: {
    ...choice(true, false),
    otherwise: true,
    does: ({ module }, leaders: boolean) => expect(module!.leaders).toBe(leaders),
  },
  interceptor: {
    allows: (value) => typeof value === 'boolean' || isEmptyObject(value),
    examples: [true, false, {}],
    wrong: [null, 0, 1, 'yes', [], { takenStatus: 200 }],
    otherwise: true,
    does: ({ module }, value: unknown) =>
      expect(module!.interceptor).toEqual(
        value === false ? undefined : { takenStatus: 423, retryAfterSeconds: undefined },
      ),
  },
} satisfies Record<string, Option>;

export const TESTING = {
  maxWaitMs: {
    ...SLOW,
    otherwise: 1_000,
    does: async ({ world: { locks, runtime } }, maxWaitMs: number) => {
      await locks.acquire(KEY, { leaseMs: A_YEAR_MS });
      const waiting = watched(locks.acquire(KEY, { waitMs: 5_000 }));
      await runtime.pass(Math.min(maxWaitMs, 5_000) - 1);
      expect(waiting.state).toBe('pending');
      await runtime.pass(1);
      expect(waiting.state).toBe('rejected');
    },
  },
} satisfies Record<string, Option>;

export const TESTING_MODULE = {
  context: MODULE.context,
  mode: choice('memory', 'off'),
} satisfies Record<string, Option>;

export const INTERCEPTOR = {
  takenStatus: {
    ...whole(400, 599),
    is: 'a status from 400 to 599',
    otherwise: 423,
    does: ({ module }, status: number) => expect(module!.interceptor?.takenStatus).toBe(status),
  },
  retryAfterSeconds: {
    is: 'a whole number of seconds',
    allows: (value) => isWhole(value, 0, Infinity),
    examples: [0, 1, 3_600],
    wrong: [...NO_WHOLE_NUMBERS, -1, Infinity],
    otherwise: undefined,
    does: ({ module }, seconds: number) => expect(module!.interceptor?.retryAfterSeconds).toBe(seconds),
  },
} satisfies Record<string, Option>;

const ONE_REPLICA = { min: 1 };

export const REDIS_STORE = {
  foreignHold: choice('error', 'taken'),
  commandTimeoutMs: ms(1),
  replicas: {
    allows: (value) => value === ONE_REPLICA,
    examples: [ONE_REPLICA],
    wrong: [1, null, [], {}, { min: 0 }],
  },
} satisfies Record<string, Option>;

export const REPLICAS = {
  min: { ...whole(1, 100), required: true },
  timeoutMs: ms(1, 1_999),
} satisfies Record<string, Option>;

export const CLUSTER = { shardedPubSub: choice(true, false) } satisfies Record<string, Option>;

export const QUORUM = { delayAfterRestartMs: ms(0) } satisfies Record<string, Option>;

const SPACE = new MemorySpace();

export const MEMORY_STORE = {
  now: aFunction(),
  wallClockMicros: aFunction(),
  shared: {
    allows: (value) => value === SPACE,
    examples: [SPACE],
    wrong: [null, {}, new MemoryStore(), MemorySpace],
  },
} satisfies Record<string, Option>;
