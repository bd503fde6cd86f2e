import { describe, expect, it } from 'vitest';
import type { LockService } from 'nest-redis-lock';
import type {
  PermitOptions,
  PermitSectionOptions,
  PermitsOptions,
} from '../../../lib/core/settings/acquire-options.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { isLockable } from './good-keys.js';
import { PERMIT_OPTIONS } from './meanings.js';
import { expectAccepted, expectKeyRefusal, expectRefusal, outcomeOf } from './refusal.js';
import { VirtualLocks } from './virtual-locks.js';

type Options = PermitSectionOptions & PermitsOptions;
type Call = (locks: LockService, key: string, options: Options) => Promise<unknown>;

/** Options of one call, past what its types say. */
const loose = (options: object): PermitOptions => options;

const CALLS: Readonly<Record<string, Call>> = {
  withPermit: (locks, key, { permits, ...options }) =>
    locks.permits(key, { permits }).withPermit(options, () => 'ran'),
  acquire: (locks, key, { permits, ...options }) => locks.permits(key, { permits }).acquire(loose(options)),
  tryAcquire: (locks, key, { permits, ...options }) =>
    locks.permits(key, { permits }).tryAcquire(loose(options)),
};

const NEEDS = { permits: 1 };
const OF_SECTIONS = ['onLost', 'awaitRelease'];

/** Every call on a free key, with these options. */
const callWith = async (options: unknown, isAllowed: boolean, name: string): Promise<void> => {
  for (const [callName, call] of Object.entries(CALLS)) {
    if (OF_SECTIONS.includes(name) && callName !== 'withPermit') continue;
    const outcome = await outcomeOf(() => call(new VirtualLocks().locks, 'k', options as Options));
    if (isAllowed) expectAccepted(outcome, name);
    else expectRefusal(outcome, name);
  }
};

describe('an option of a call for a permit', () => {
  it.each(Object.entries(PERMIT_OPTIONS))(
    '%s: is taken, or refused by name',
    async (name, { allows, examples }) => {
      await forAnyValue(examples, async (value) => {
        if (name === 'permits' && value === undefined) return;
        await callWith({ ...NEEDS, [name]: value }, value === undefined || allows(value), name);
      });
    },
  );

  it('signal: is one, or refused by name', async () => {
    const { signal } = new AbortController();
    await forAnyValue([signal, { aborted: false }], (value) =>
      callWith({ ...NEEDS, signal: value }, value === undefined || value === signal, 'signal'),
    );
  });

  it('permits: so many get one, whatever the number, and one more does not', async () => {
    for (const permits of [1, 2, 3, 50]) {
      const { locks } = new VirtualLocks();
      for (let i = 0; i < permits; i++) await locks.permits('k', { permits }).acquire({ waitMs: 0 });
      expect(await locks.permits('k', { permits }).tryAcquire()).toBeNull();
      expect((await locks.inspect('k'))?.holders).toHaveLength(permits);
    }
  });

  it('permits: undefined leaves the number to the store, whose own counts', async () => {
    const { locks } = new VirtualLocks();
    const without = await outcomeOf(() => locks.permits('k', { permits: undefined }).acquire());
    expect(without).toMatchObject({ thrown: { code: 'LOCK_STORE_FAILED' } });
    await locks.permits('k', { permits: 2 }).acquire();
    expect(await locks.permits('k').tryAcquire()).not.toBeNull();
    expect(await locks.permits('k').tryAcquire()).toBeNull();
  });

  it('reentrant: is none, and refused by name', async () => {
    await forAnyValue([true, false], (value) =>
      callWith({ ...NEEDS, reentrant: value }, value === undefined, 'reentrant'),
    );
  });

  it('all of them: an object, or undefined; anything else is refused', async () => {
    const refuses = async (value: unknown): Promise<void> => {
      const options = value as object;
      const { locks } = new VirtualLocks();
      for (const call of [
        () => locks.permits('k', options),
        () => locks.permits('k', NEEDS).withPermit(options, () => 'ran'),
        () => locks.permits('k', NEEDS).acquire(options),
        () => locks.permits('k', NEEDS).tryAcquire(options),
      ])
        expectRefusal(await outcomeOf(async () => call()), 'options?');
    };
    await forAnyValue([5_000, 'k'], async (value) => {
      // A function in their place is the section; of an object each member is looked at.
      if (value === undefined || typeof value === 'function') return;
      if (typeof value !== 'object' || value === null) await refuses(value);
    });
    await refuses([3]);
  });
});

describe('permits of a call for a lock', () => {
  it('are refused by name, whatever they are', async () => {
    await forAnyValue([1, 3], async (permits) => {
      if (permits === undefined) return;
      const options = { permits } as object;
      const { locks } = new VirtualLocks();
      const calls: (() => Promise<unknown>)[] = [
        () => locks.withLock('k', options, () => 'ran'),
        () => locks.tryWithLock('k', options, () => 'ran'),
        () => locks.acquire('k', options),
        () => locks.tryAcquire('k', options),
      ];
      for (const call of calls) expectRefusal(await outcomeOf(call), 'permits');
    });
  });
});

describe('the key of a call for a permit', () => {
  it.each(Object.entries(CALLS))('%s: a string, or a LockKeyError', async (_name, call) => {
    await forAnyValue(['k', '', ['k'], ['k', 'l'], [], 'a{b', 'a{b}'], async (key) => {
      const outcome = await outcomeOf(() => call(new VirtualLocks().locks, key as string, NEEDS));
      if (isLockable(key)) expectAccepted(outcome, 'the key');
      else expectKeyRefusal(outcome);
    });
  });
});

describe('the section of withPermit', () => {
  it('is a function, and no generator, or refused before a permit is taken', async () => {
    const generators: (() => unknown)[] = [function* () {}, async function* () {}];
    for (const section of generators) {
      const outcome = await outcomeOf(() => new VirtualLocks().locks.permits('k', NEEDS).withPermit(section));
      expectRefusal(outcome, 'a generator function');
      expectRefusal(outcome, 'Limited');
    }
    await forAnyValue([], async (value) => {
      if (typeof value === 'function') return;
      const { locks } = new VirtualLocks();
      expectRefusal(
        await outcomeOf(() => locks.permits('k', NEEDS).withPermit(value as () => string)),
        'function',
      );
      expect(await locks.isLocked('k')).toBe(false);
    });
  });
});
