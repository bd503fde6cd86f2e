import { describe, expect, it } from 'vitest';
import { currentLease, lockKey, LockKeyError, type LockEvents, type LockService } from 'nest-redis-lock';
import { forAnyValue } from '../../support/property/any-value.js';
import { isKey, isKeyOrKeys } from './good-keys.js';
import { expectAccepted, expectKeyRefusal, expectRefusal, outcomeOf } from './refusal.js';
import { VirtualLocks } from './virtual-locks.js';

/** A method of the service, with whatever as its key. */
type Keyed = (locks: LockService, key: never) => Promise<unknown>;

const ON_KEYS: Readonly<Record<string, Keyed>> = {
  withLock: (locks, key) => locks.withLock(key, () => 'ran'),
  tryWithLock: (locks, key) => locks.tryWithLock(key, () => 'ran'),
  acquire: (locks, key) => locks.acquire(key),
  tryAcquire: (locks, key) => locks.tryAcquire(key),
};

const ON_ONE_KEY: Readonly<Record<string, Keyed>> = {
  inspect: (locks, key) => locks.inspect(key),
  isLocked: (locks, key) => locks.isLocked(key),
  forceUnlock: (locks, key) => locks.forceUnlock(key),
};

const KEYS = ['k', '', ['k', 'l'], ['k', 'k'], [], ['k', ''], [7], '<<x>>', '__proto__', 'a{b', 'a{b}', '\n'];

describe('the key of a call', () => {
  const check = (call: Keyed, isGood: (key: unknown) => boolean): Promise<void> =>
    forAnyValue(KEYS, async (key) => {
      const outcome = await outcomeOf(() => call(new VirtualLocks().locks, key as never));
      if (isGood(key)) expectAccepted(outcome, 'the key');
      else expectKeyRefusal(outcome);
    });

  it.each(Object.entries(ON_KEYS))('%s: a string, or several, or a LockKeyError', (_name, call) =>
    check(call, isKeyOrKeys),
  );

  it.each(Object.entries(ON_ONE_KEY))('%s: a string, or a LockKeyError', (_name, call) => check(call, isKey));

  it('lockKey: whatever the template and the values are, a key or a LockKeyError', async () => {
    await forAnyValue(['k:<<a>>', { a: 1 }], async (value) => {
      for (const [template, values] of [
        [value, { a: 1 }],
        ['k:<<a>>', value],
        ['k:<<a>>', { a: value }],
      ]) {
        const outcome = await outcomeOf(() => lockKey(template as string, values as object));
        if ('thrown' in outcome) expectKeyRefusal(outcome);
        else expect(isKey(outcome.value)).toBe(true);
      }
    });
  });
});

describe('the section of withLock', () => {
  it('is no generator, whose body would run after the lock, and stands after the options', async () => {
    const { locks } = new VirtualLocks();
    const sections: (() => unknown)[] = [function* () {}, async function* () {}];
    for (const section of sections) {
      const calls: (() => Promise<unknown>)[] = [
        () => locks.withLock('k', section),
        () => locks.tryWithLock('k', {}, section),
      ];
      for (const call of calls) {
        expectRefusal(await outcomeOf(call), 'a generator function');
      }
    }
    const swapped = locks.withLock as (...args: unknown[]) => Promise<unknown>;
    const outcome = await outcomeOf(() => swapped.call(locks, 'k', () => 1, { waitMs: 5 }));
    expectRefusal(outcome, 'options before the section');
  });

  it('is a function, or refused before the lock is taken', async () => {
    await forAnyValue([], async (value) => {
      if (typeof value === 'function') return;
      const { locks } = new VirtualLocks();
      const outcome = await outcomeOf(() => locks.withLock('k', undefined, value as () => string));
      expectRefusal(outcome, 'function');
      expect(await locks.isLocked('k')).toBe(false);
    });
  });
});

describe('the arguments of a lease', () => {
  it('extend: whole milliseconds from 1, anything else is refused and the lease stays as it was', async () => {
    await forAnyValue([1, 60_000, 0, undefined], async (ms) => {
      const { locks } = new VirtualLocks();
      const lease = await locks.acquire('k');
      const outcome = await outcomeOf(() => lease.extend(ms as number));
      const isGood = Number.isInteger(ms) && (ms as number) >= 1 && (ms as number) <= 366 * 24 * 3_600_000;
      if (isGood) expectAccepted(outcome, 'extend');
      else expectRefusal(outcome, 'extend');
      expect(lease.remainingMs()).toBe(Math.max(30_000, isGood ? (ms as number) : 0));
      expect(await locks.inspect('k')).toMatchObject({
        holders: [{ remainingMs: lease.remainingMs() }],
      });
    });
  });

  it('tokenFor: one of its keys, or a LockKeyError', async () => {
    const lease = await new VirtualLocks().locks.acquire('k');
    await forAnyValue([], async (key) => {
      if (key !== 'k') expectKeyRefusal(await outcomeOf(() => lease.tokenFor(key as string)));
    });
  });

  it('currentLease: one of the enclosing keys, or a LockConfigurationError', async () => {
    await new VirtualLocks().locks.withLock('k', () =>
      forAnyValue([], async (key) => {
        const outcome = await outcomeOf(() => currentLease(key as string).key);
        if (key === undefined) expect(expectAccepted(outcome, 'the key')).toBe('k');
        else if (key !== 'k') expectRefusal(outcome, 'currentLease');
      }),
    );
  });
});

describe('listening to events', () => {
  const EVENTS: readonly unknown[] = ['acquired', 'busy', 'released', 'lost', 'store-down', 'store-up'];

  it('of a name that is none, or with a listener that is none, is refused', async () => {
    await forAnyValue([...EVENTS, 'acquire', 'toString'], async (value) => {
      const { locks } = new VirtualLocks();
      const named = await outcomeOf(() => locks.on(value as keyof LockEvents, () => undefined));
      if (EVENTS.includes(value)) expectAccepted(named, 'event');
      else expectRefusal(named, 'event');
      const listened = await outcomeOf(() => locks.on('lost', value as () => void));
      if (typeof value === 'function') expectAccepted(listened, 'listener');
      else expectRefusal(listened, 'listener');
    });
  });
});

it('LockKeyError is no LockConfigurationError: the two kinds of refusal are told apart', async () => {
  const outcome = await outcomeOf(() => lockKey('<<', {}));
  expect('thrown' in outcome && outcome.thrown).toBeInstanceOf(LockKeyError);
  expect(() => expectRefusal(outcome, 'key')).toThrow('another kind');
});
