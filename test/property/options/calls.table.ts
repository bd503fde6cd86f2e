import { expect } from 'vitest';
import type { LockNotAcquiredError } from 'nest-redis-lock';
import { createTestingLocks } from 'nest-redis-lock/testing';
import type {
  AcquireOptions,
  LockMode,
  PermitOptions,
  SectionOptions,
} from '../../../lib/core/settings/acquire-options.js';
import type { WaitOptions } from '../../../lib/core/settings/object-call.js';
import type { LeaderOptions, LeadOptions } from '../../../lib/nest/leader/leader.options.js';
import type { DecoratorOptions } from '../../../lib/nest/locked/locked.options.js';
import { watched } from '../../support/core/core-under-test.js';
import { settled } from '../../support/core/virtual-runtime.js';
import {
  A_YEAR_MS,
  choice,
  isFunction,
  isWhole,
  ms,
  NO_WHOLE_NUMBERS,
  whole,
  type Option,
} from './option.js';
import { KEY, type VirtualLocks } from './virtual-locks.js';

const AN_HOUR_MS = 3_600_000;
const MAX_INT = 2 ** 31 - 1;

const isHeld = async ({ locks }: VirtualLocks): Promise<boolean> => (await locks.inspect(KEY)) !== null;

const remainingMs = async ({ locks }: VirtualLocks): Promise<number | undefined> =>
  (await locks.inspect(KEY))?.holders[0]?.remainingMs;

const isForeign = (value: unknown): boolean => value === foreign;

const isListOfForeign = (value: unknown): boolean => {
  try {
    return Array.isArray(value) && Array.from(value).every(isForeign);
  } catch {
    return false;
  }
};

const endless = () => new Promise<never>(() => undefined);

const waitMs: Option = {
  ...ms(0),
  is: `${ms(0).is}, or Infinity`,
  allows: (value) => value === Infinity || isWhole(value, 0, A_YEAR_MS),
  examples: [0, 1, 5_000, A_YEAR_MS, Infinity],
  wrong: [...NO_WHOLE_NUMBERS, -1, A_YEAR_MS + 1],
  otherwise: 5_000,
  does: async ({ world, run, exhaust }, waitMs: number) => {
    const free = await exhaust();
    const waiting = watched(run(() => 'ran'));
    // A waiter refreshes its queue entry each second: a year of that takes minutes, also on a virtual clock.
    const isOver = waitMs <= AN_HOUR_MS;
    await world.runtime.pass(isOver ? Math.max(0, waitMs - 1) : AN_HOUR_MS);
    expect(waiting.state === 'pending').toBe(waitMs > 0);
    if (!isOver) await free();
    await world.runtime.pass(2);
    expect([waiting.state === 'pending', waiting.value]).toEqual([false, isOver ? undefined : 'ran']);
    if (waiting.error) expect(waiting.error).toMatchObject({ code: 'LOCK_TAKEN' });
  },
};

const leaseMs: Option = {
  ...ms(1),
  does: async ({ world, run }, leaseMs: number | undefined) => {
    const lost: unknown[] = [];
    world.locks.on('lost', (event) => void lost.push(event));
    watched(run(endless));
    await settled();
    const { watchdogMs } = world.settings;
    expect(await remainingMs(world)).toBe(leaseMs ?? watchdogMs);
    await world.runtime.pass((leaseMs ?? 3 * watchdogMs) - 1);
    expect([await isHeld(world), lost.length]).toEqual([true, 0]);
    await world.runtime.pass(1);
    expect([await isHeld(world), lost.length]).toEqual(leaseMs === undefined ? [true, 0] : [false, 1]);
  },
};

const watchdogMs: Option = {
  ...ms(1_000),
  otherwise: 30_000,
  does: async ({ world, run }, watchdogMs: number) => {
    watched(run(endless));
    await settled();
    expect(await remainingMs(world)).toBe(watchdogMs);
    await world.runtime.pass(3 * watchdogMs);
    expect(await remainingMs(world)).toBeGreaterThan(watchdogMs / 2);
  },
};

const holdAtLeastMs: Option = {
  ...ms(0),
  otherwise: 0,
  does: async ({ world, run }, holdAtLeastMs: number) => {
    expect(await run(() => 'done')).toBe('done');
    await world.runtime.pass(Math.max(0, holdAtLeastMs - 1));
    expect(await isHeld(world)).toBe(holdAtLeastMs > 0);
    await world.runtime.pass(1);
    expect(await isHeld(world)).toBe(false);
  },
};

/** At least a third of the lease that the world has. */
const MIN_HOLD_MS = 10_000;

const maxHoldMs: Option = {
  // A decorator refuses what no module takes, and a service the rest: in other words.
  ...ms(MIN_HOLD_MS),
  is: undefined,
  allows: (value) => value === Infinity || isWhole(value, MIN_HOLD_MS, A_YEAR_MS),
  examples: [MIN_HOLD_MS, 60_000, A_YEAR_MS, Infinity],
  wrong: [...NO_WHOLE_NUMBERS, 0, 1, 333, MIN_HOLD_MS - 1, A_YEAR_MS + 1],
  otherwise: Infinity,
  does: async ({ world, run }, maxHoldMs: number) => {
    const lost: unknown[] = [];
    world.locks.on('lost', ({ reason }) => void lost.push(reason));
    watched(run(endless));
    const isOver = maxHoldMs <= AN_HOUR_MS;
    await world.runtime.pass(isOver ? maxHoldMs - 1 : AN_HOUR_MS);
    expect([await isHeld(world), lost]).toEqual([true, []]);
    if (!isOver) return;
    await world.runtime.pass(1);
    expect([await isHeld(world), lost]).toEqual([true, ['overdue']]);
    await world.runtime.pass(world.settings.watchdogMs);
    expect(await isHeld(world)).toBe(false);
  },
};

const oncePerMs: Option = {
  ...ms(1),
  does: async ({ world, run }, oncePerMs: number | undefined) => {
    expect(await run(() => 'done')).toBe('done');
    const left = await remainingMs(world);
    expect(left).toBe(oncePerMs);
    await world.runtime.pass(oncePerMs ?? 0);
    expect(await isHeld(world)).toBe(false);
  },
};

/** A signal of another library: it has what a wait needs, and is no AbortSignal. */
class ForeignSignal extends EventTarget {
  aborted = false;
  readonly reason: unknown = undefined;

  abort(): void {
    this.aborted = true;
    this.dispatchEvent(new Event('abort'));
  }
}

const signal: Option = {
  is: 'an AbortSignal',
  allows: (value) => signal.examples.includes(value),
  examples: [new AbortController().signal, new ForeignSignal()],
  wrong: [
    ...[null, true, 'abort', {}, { aborted: false }, new AbortController(), new EventTarget(), AbortSignal],
    { aborted: false, addEventListener: 7, removeEventListener: 7 },
    { aborted: false, addEventListener: () => undefined },
    { aborted: 'no', addEventListener: () => undefined, removeEventListener: () => undefined },
    // Methods that need another object.
    {
      aborted: false,
      addEventListener: EventTarget.prototype.addEventListener,
      removeEventListener: () => undefined,
    },
  ],
  does: async ({ world, run, exhaust }, value: AbortSignal | ForeignSignal | undefined) => {
    if (!(value instanceof ForeignSignal)) return;
    await exhaust();
    const waiting = watched(run(() => 'ran'));
    await settled();
    // A call that waits by default; the others have their reply.
    if (waiting.state !== 'pending') return;
    value.abort();
    await world.runtime.pass(0);
    value.aborted = false;
    expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED' });
  },
};

/** A lease of another service: it proves nothing. */
const foreign = await createTestingLocks().acquire(KEY);

const inside: Option = {
  is: 'a lease, or a list of leases (of withLocks: lease.of(service, key))',
  allows: (value) => value === foreign || isListOfForeign(value),
  examples: [foreign, [foreign], []],
  wrong: [null, true, 'lease', {}, [null], [foreign, {}], new Array(1), { ...foreign }],
  does: async ({ world, run }) => {
    const call = await world.locks.withLock(KEY, async () => {
      const ordinary = watched(run(() => 'ran'));
      await settled();
      expect(ordinary.value).toBeUndefined();
      return ordinary;
    });
    await settled();
    expect(call.state).not.toBe('pending');
  },
};

const mode: Option = {
  ...choice('exclusive', 'fair', 'read', 'write'),
  otherwise: 'exclusive',
  does: async ({ world, run }, mode: LockMode) => {
    expect(await run(async () => (await world.locks.inspect(KEY))?.kind)).toBe(mode);
  },
};

const label: Option = {
  is: 'well-formed text of 1 to 100 characters',
  allows: (value) => typeof value === 'string' && /^[^]{1,100}$/.test(value) && !/\p{Surrogate}/u.test(value),
  examples: ['x', 'order:<<userId>>', '__proto__', 'ключ:😀', 'x'.repeat(100)],
  wrong: ['', 7, null, {}, ['x'], '\ud800', 'x'.repeat(101)],
  does: async ({ world, run }, label: string | undefined) => {
    const held = run(() => world.locks.held()[0]?.label);
    expect(await held).toEqual(label ?? expect.stringMatching(/^.{1,100}$/));
  },
};

const onLost: Option = {
  ...choice('event', 'throw'),
  otherwise: 'event',
  does: async ({ world, run }, choice: 'event' | 'throw') => {
    const work = run(async () => {
      await world.locks.forceUnlock(KEY);
      return 'done';
    });
    if (choice === 'event') expect(await work).toBe('done');
    else await expect(work).rejects.toMatchObject({ code: 'LOCK_LOST' });
  },
};

const awaitRelease: Option = {
  ...choice(true, false),
  otherwise: true,
  does: async ({ world, run }, waits: boolean) => {
    const { locks } = world;
    const reply = world.holdUpReleases();
    const work = watched(run(() => 'done'));
    await settled();
    expect([work.state, locks.usage.leases]).toEqual([waits ? 'pending' : 'fulfilled', 1]);
    reply();
    await settled();
    expect([work.value, locks.usage.leases]).toEqual(['done', 0]);
  },
};

const later = (error: LockNotAcquiredError, work: () => string) => `${error.code}, then ${work()}`;

const onBusy: Option = {
  is: "'skip' or a function",
  allows: (value) => value === 'skip' || isFunction(value),
  examples: ['skip', later],
  wrong: ['wait', 'ignore', null, true, 7],
  does: async ({ world, run, exhaust }, value: unknown) => {
    if (isFunction(value) && value !== later) return;
    await exhaust();
    const call = watched(run(() => 'the work'));
    await world.runtime.pass(5_001);
    if (value === undefined) expect(call.error).toMatchObject({ code: 'LOCK_TAKEN' });
    else expect(call.value).toBe(value === 'skip' ? undefined : 'LOCK_TAKEN, then the work');
    expect(call.state).not.toBe('pending');
  },
};

const service: Option = {
  is: 'the name of a module',
  allows: (value) => typeof value === 'string',
  examples: ['', 'billing'],
  wrong: [7, null, {}],
};

const OF_LOCKS = {
  ...{ waitMs, leaseMs, watchdogMs, holdAtLeastMs, maxHoldMs },
  ...{ signal, mode, label },
};

export const ACQUIRE = { ...OF_LOCKS, inside } satisfies Record<keyof AcquireOptions, Option>;

const OF_SECTIONS = { onLost, awaitRelease };

export const SEVERAL = { ...OF_LOCKS, ...OF_SECTIONS };

export const LOCKED = { ...SEVERAL, oncePerMs };

export const SECTION = { ...LOCKED, inside } satisfies Record<keyof SectionOptions, Option>;

export const PERMIT = {
  waitMs,
  leaseMs,
  watchdogMs,
  holdAtLeastMs,
  maxHoldMs,
  signal,
  label,
} satisfies Record<keyof PermitOptions, Option>;

export const PERMIT_SECTION = { ...PERMIT, ...OF_SECTIONS };

export const NUMBER_OF_PERMITS: { readonly permits: Option } = {
  permits: {
    ...whole(1, 1_000_000),
    does: async ({ world, run }, permits: number | undefined) => {
      const running = watched(run(endless));
      await settled();
      const state = await world.locks.permits(KEY).inspect();
      if (permits !== undefined) expect(state).toMatchObject({ permits, free: permits - 1 });
      // The store has no number for the key.
      else expect(running.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    },
  },
};

export const DECORATOR = { onBusy, service } satisfies Record<keyof DecoratorOptions, Option>;

export const LEAD = { watchdogMs, label } satisfies Record<keyof LeadOptions, Option>;

export const LEADER = { ...LEAD, service } satisfies Record<keyof LeaderOptions, Option>;

/** Waits for semaphores and latches. */
export const WAIT = { waitMs, signal } satisfies Record<keyof WaitOptions, Option>;

/** Makes no call wait, unless the option says so. */
export const TRY = { waitMs: { ...waitMs, otherwise: 0 } };

/** Arguments of semaphores, latches and leases. */
export const AMOUNT: Option = whole(1, MAX_INT);
export const CHANGE: Option = {
  is: `a whole number from -${MAX_INT} to ${MAX_INT}, and not 0`,
  allows: (value) => value !== 0 && isWhole(value, -MAX_INT, MAX_INT),
  examples: [-MAX_INT, -1, 1, MAX_INT],
  wrong: [...NO_WHOLE_NUMBERS, 0, -MAX_INT - 1, MAX_INT + 1, Infinity],
  required: true,
};
export const EXTENSION: Option = {
  ...ms(1),
  required: true,
  does: async ({ world }, extension: number) => {
    expect(await remainingMs(world)).toBe(Math.max(30_000, extension));
  },
};
