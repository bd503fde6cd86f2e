import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockService } from 'nest-redis-lock';
import { RedisStore } from 'nest-redis-lock/redis';
import { MemorySpace, MemoryStore } from 'nest-redis-lock/testing';
import { LockLostError } from '../../../lib/core/errors/lock.errors.js';
import type { LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { runs } from '../../support/property/runs.js';
import { claimFor, newKey } from '../../support/stores/harness.js';
import { isEmptyObject, type Options } from './option.js';
import { PLACES, type Place } from './places.js';
import { expectAccepted, expectRefusal, messageOf, outcomeOf } from './refusal.js';
import { SETTINGS } from './setup.table.js';

const apps = useApps();

/** A shorter lease can be over before its section begins, on a busy machine. */
const SHORT_MS = 1_000;

const give = (place: Place, options: unknown) => outcomeOf(() => place.give(options as never));

const titled = (places: readonly Place[]) => places.map((place) => [place.title, place] as const);

const ROWS = PLACES.flatMap((place) =>
  Object.entries(place.options).map(([name, option]) => [name, place.title, place, option] as const),
);

const ALL = Object.assign({}, ...PLACES.map(({ options }) => options)) as Options;

describe('an option', () => {
  it.each(ROWS)(
    '%s of %s does what its value says, or is refused by name',
    async (name, _, place, option) => {
      const { allows, examples, wrong, is, required, otherwise, does } = option;
      expect([examples.every(allows), wrong.some(allows)]).toEqual([true, false]);
      await forAnyValue([undefined, ...examples, ...wrong], async (value) => {
        const outcome = await give(place, { ...place.needs, [name]: value });
        if (value === undefined ? required : !allows(value)) {
          expectRefusal(outcome, name);
          const { where = '', path = '' } = place;
          if (is !== undefined && value !== undefined)
            expect(messageOf(outcome)).toContain(`${where}${path}${name} must be ${is}, but is `);
          expect(messageOf(outcome)).toMatch(new RegExp(`^${where}`));
          return;
        }
        const locks = expectAccepted(outcome, name);
        if (locks) await does?.(locks, (value === undefined ? otherwise : value) as never);
      });
    },
  );

  it.each(titled(PLACES.filter(({ owner }) => owner)))(
    'of another place is refused by %s, unless it is undefined',
    async (_, place) => {
      const has = [...Object.keys(place.options), ...(place.knows ?? [])];
      for (const [name, { examples }] of Object.entries(ALL)) {
        if (has.includes(name)) continue;
        const refused = await give(place, { ...place.needs, [name]: examples[0] });
        expectRefusal(refused, name);
        expect(messageOf(refused)).toContain(`${place.where ?? ''}${name} is no option of ${place.owner}`);
        expectAccepted(await give(place, { ...place.needs, [name]: undefined }), name);
      }
    },
  );
});

/** Returns false for an object with a getter that throws, or a proxy that does. */
const isCopyable = (value: unknown): boolean => {
  try {
    Object.entries({ ...(value as object) });
    return true;
  } catch {
    return false;
  }
};

/** Returns the keys that may be names of options. Each of those may be refused by its own name. */
const optionsIn = (value: unknown): readonly string[] => {
  try {
    return Object.keys(value as object).filter((key) => /^[a-zA-Z]+$/.test(key));
  } catch {
    // It is no object, or cannot be read.
    return [];
  }
};

describe('the options as a whole', () => {
  it.each(titled(PLACES.filter(({ whole }) => whole)))('of %s are an object', async (_, place) => {
    await forAnyValue([undefined, {}, 5_000, 'k', () => 1, [1_000]], async (value) => {
      if (place.isCopied && !isCopyable(value)) return;
      const outcome = await give(place, value);
      if (place.whole === 'optional' && (value === undefined || isEmptyObject(value)))
        expectAccepted(outcome, 'options');
      else
        expectRefusal(
          outcome,
          `(options?|${[...Object.keys(place.needs ?? {}), ...optionsIn(value)].join('|')})`,
        );
    });
  });

  it('of MemoryStore are an object, or undefined', async () => {
    await forAnyValue([undefined, {}], async (value) => {
      const outcome = await outcomeOf(() => new MemoryStore(value as object));
      if (value === undefined || isEmptyObject(value)) expectAccepted(outcome, 'options');
      else if (typeof value !== 'object' || value === null) expectRefusal(outcome, 'options');
    });
  });

  it('of RedisStore are refused without showing the password when they are an address', async () => {
    const outcome = await outcomeOf(() => new RedisStore('redis://:secret@127.0.0.1' as never));
    expect(messageOf(outcome)).toBe('RedisStore takes its options as an object: new RedisStore({ redis }).');
  });
});

describe('an option of a store', () => {
  it('now and wallClockMicros are its clocks; undefined are those of the machine', async () => {
    const store = new MemoryStore({ now: () => 7, wallClockMicros: () => 2e15 });
    const claim = claimFor(newKey());
    expect(await store.kinds.exclusive.acquire(claim)).toMatchObject({ token: 2e15 });
    expect(await store.inspect(claim.finalKey)).toMatchObject({ holders: [{ remainingMs: claim.leaseMs }] });
    const usual = new MemoryStore({ now: undefined, wallClockMicros: undefined });
    expect(await usual.kinds.exclusive.acquire(claim)).toMatchObject({
      token: expect.closeTo(Date.now() * 1_000, -8),
    });
  });

  it('shared is its space', () => {
    const shared = new MemorySpace();
    expect(new MemoryStore({ shared }).space).toBe(shared);
  });

  it.each([1, 30])(
    'commandTimeoutMs: %i is how long a command waits for the connection',
    async (timeoutMs) => {
      const store = new RedisStore({ redis: { host: '127.0.0.1', port: 1 }, commandTimeoutMs: timeoutMs });
      await expect(store.ping()).rejects.toThrow(`within ${timeoutMs} ms`);
      await store.close();
    },
  );
});

describe('several settings at once', () => {
  const setting = fc
    .constantFrom(...Object.entries(SETTINGS as Options))
    .chain(([name, { allows, examples }]) =>
      fc
        .oneof(fc.constantFrom(...examples), fc.constantFrom(undefined, null, -1, 0.5, 'x', {}, [], 1n))
        .map((value) => ({ name, value, isGood: value === undefined || allows(value) })),
    );
  const several = fc.uniqueArray(setting, { selector: ({ name }) => name, maxLength: 6 });

  it('start an app that locks, or keep it from starting by an error that names one that is wrong', async () => {
    await fc.assert(
      fc.asyncProperty(several, async (given) => {
        const options = Object.fromEntries(given.map(({ name, value }) => [name, value]));
        const starting = await outcomeOf(() =>
          apps.context(rootModule({ store: new MemoryStore(), ...options })),
        );
        const wrong = given.filter(({ isGood }) => !isGood).map(({ name }) => name);
        const { watchdogMs = 30_000, maxHoldMs = Infinity } = options as LockSettingsInput;
        // Each is good by itself, but a hold would end before its first renewal.
        const areTimes = !wrong.includes('watchdogMs') && !wrong.includes('maxHoldMs');
        if (areTimes && maxHoldMs < watchdogMs / 3) wrong.push('maxHoldMs');
        if (wrong.length > 0) return expectRefusal(starting, `(${wrong.join('|')})`);
        const app = expectAccepted(starting, 'the options');
        const outcome = await outcomeOf(() => app.get(LockService).withLock('k', () => 'ran'));
        if ('thrown' in outcome && Number(options['leaseMs']) < SHORT_MS)
          expect(outcome.thrown).toBeInstanceOf(LockLostError);
        else expect(expectAccepted(outcome, 'the options')).toBe('ran');
        await apps.close();
      }),
      runs(100),
    );
  });
});
