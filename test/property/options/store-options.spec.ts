import { describe, expect, it } from 'vitest';
import { RedisStore, type RedisStoreOptions } from 'nest-redis-lock/redis';
import { MemorySpace, MemoryStore, type MemoryStoreOptions } from 'nest-redis-lock/testing';
import { claimFor, newKey } from '../../support/stores/harness.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { expectAccepted, expectRefusal, outcomeOf } from './refusal.js';

const isFunction = (value: unknown): value is () => unknown => typeof value === 'function';

describe('an option of MemoryStore', () => {
  const make = (options: unknown) => outcomeOf(() => new MemoryStore(options as MemoryStoreOptions));

  it.each(['now', 'wallClockMicros'])('%s: a function, or refused by name', async (name) => {
    await forAnyValue([() => 1], async (value) => {
      const outcome = await make({ [name]: value });
      if (value === undefined || isFunction(value)) expectAccepted(outcome, name);
      else expectRefusal(outcome, name);
    });
  });

  it('now and wallClockMicros are the clocks that are used; undefined are those of the machine', async () => {
    const store = new MemoryStore({ now: () => 7, wallClockMicros: () => 2e15 });
    const claim = claimFor(newKey());
    expect(await store.kinds.exclusive.acquire(claim)).toMatchObject({ token: 2e15 });
    expect(await store.inspect(claim.finalKey)).toMatchObject({ holders: [{ remainingMs: claim.leaseMs }] });
    const usual = await new MemoryStore({
      now: undefined,
      wallClockMicros: undefined,
    }).kinds.exclusive.acquire(claim);
    expect(usual).toMatchObject({ token: expect.closeTo(Date.now() * 1_000, -8) });
  });

  it('shared: a space, or refused by name', async () => {
    const space = new MemorySpace();
    await forAnyValue([space, new MemoryStore(), MemorySpace], async (value) => {
      const outcome = await make({ shared: value });
      if (value === undefined || value === space) expectAccepted(outcome, 'shared');
      else expectRefusal(outcome, 'shared');
    });
    expect(new MemoryStore({ shared: space }).space).toBe(space);
  });

  it('all of them: an object, or refused', async () => {
    await forAnyValue([], async (value) => {
      if (typeof value === 'object' && value !== null) return;
      const outcome = await make(value);
      if (value === undefined) expectAccepted(outcome, 'options');
      else expectRefusal(outcome, 'options');
    });
  });
});

/** Nobody listens there, and nobody is asked. */
const NOWHERE = { host: '127.0.0.1', port: 1 };

const open = (options: unknown) =>
  outcomeOf(async () => {
    const store = new RedisStore(options as RedisStoreOptions);
    await store.close();
  });

describe('an option of RedisStore', () => {
  it('commandTimeoutMs: whole milliseconds from 1, or refused by name', async () => {
    await forAnyValue([1, 2_000], async (value) => {
      const outcome = await open({ redis: NOWHERE, commandTimeoutMs: value });
      const isGood =
        Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 366 * 24 * 3_600_000;
      if (value === undefined || isGood) expectAccepted(outcome, 'commandTimeoutMs');
      else expectRefusal(outcome, 'commandTimeoutMs');
    });
  });

  it.each([1, 30])(
    'commandTimeoutMs: %i is how long a command waits for the connection',
    async (commandTimeoutMs) => {
      const store = new RedisStore({ redis: NOWHERE, commandTimeoutMs });
      await expect(store.ping()).rejects.toThrow(`within ${commandTimeoutMs} ms`);
      await store.close();
    },
  );

  it.each(['keyPrefix', 'waitMs', 'commandTimeout'])('%s is none of them, and is refused', async (name) => {
    expectRefusal(await open({ redis: NOWHERE, [name]: 5 }), name);
  });

  it('an address instead of options is refused without showing its password', async () => {
    const outcome = await open('redis://:secret@127.0.0.1');
    expect(outcome).toMatchObject({
      thrown: { message: 'RedisStore takes its options as an object: new RedisStore({ redis }).' },
    });
  });

  it('all of them: an object with redis, or refused', async () => {
    await forAnyValue([{}, { redis: undefined }], async (value) =>
      expectRefusal(await open(value), 'redis|RedisStore'),
    );
  });
});
