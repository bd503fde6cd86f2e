import { describe, expect, it } from 'vitest';
import {
  currentLease,
  Limited,
  Locked,
  lockKey,
  LockKeyError,
  LockService,
  type LockEvents,
} from 'nest-redis-lock';
import { bindLocks } from 'nest-redis-lock/testing';
import { isArray } from '../../../lib/core/util/describe.js';
import { compileKey } from '../../../lib/key/key-template.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { isKey, isKeyOrKeys, isLockable } from './good-keys.js';
import { expectAccepted, expectKeyRefusal, expectRefusal, outcomeOf } from './refusal.js';
import { VirtualLocks } from './virtual-locks.js';

/** A method of the service, with any value as its key. */
type Keyed = (locks: LockService, key: never) => unknown;

const ONE = { permits: 1 };

const ON_KEYS: Readonly<Record<string, Keyed>> = {
  withLock: (locks, key) => locks.withLock(key, () => 'ran'),
  tryWithLock: (locks, key) => locks.tryWithLock(key, () => 'ran'),
  acquire: (locks, key) => locks.acquire(key),
  tryAcquire: (locks, key) => locks.tryAcquire(key),
};

const ON_ONE_LOCKABLE: Readonly<Record<string, Keyed>> = {
  withPermit: (locks, key) => locks.permits(key, ONE).withPermit(() => 'ran'),
  'permits().acquire': (locks, key) => locks.permits(key, ONE).acquire(),
  'permits().tryAcquire': (locks, key) => locks.permits(key, ONE).tryAcquire(),
  lead: (locks, key) => locks.lead(key, () => undefined),
  semaphore: (locks, key) => locks.semaphore(key),
  countDownLatch: (locks, key) => locks.countDownLatch(key),
  inspect: (locks, key) => locks.inspect(key),
  isLocked: (locks, key) => locks.isLocked(key),
  forceUnlock: (locks, key) => locks.forceUnlock(key),
};

const KEYS = [
  'k',
  '',
  ['k'],
  ['k', 'l'],
  ['k', 'k'],
  [],
  ['k', ''],
  [7],
  '<<x>>',
  '__proto__',
  'a{b',
  'a}b',
  'a{b}',
  '\n',
];

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

  it.each(Object.entries(ON_ONE_LOCKABLE))(
    '%s: a string that a store keeps, or a LockKeyError',
    (_name, call) => check(call, isLockable),
  );

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

describe.each([
  { name: '@Locked', decorator: Locked, needs: {}, isGood: isKeyOrKeys },
  { name: '@Limited', decorator: Limited, needs: ONE, isGood: isLockable },
])('the key of $name', ({ decorator, needs, isGood }) => {
  const untyped = decorator as unknown as (...args: unknown[]) => MethodDecorator;

  /** Decorates a method, as it happens when its class is loaded. Resolves with how to call it. */
  const load = (...args: unknown[]) =>
    outcomeOf(() => {
      class Orders {
        @untyped(...args)
        async pay(id: string): Promise<string> {
          return `paid ${id}`;
        }
      }
      return () => outcomeOf(() => bindLocks(new Orders(), new VirtualLocks().locks).pay('7'));
    });

  it('is a template or a function; anything else is refused at load', async () => {
    await forAnyValue(['order:<<id>>', ['a', 'b:<<0>>'], 'order:<<user>>', '<<', []], async (value) => {
      // The next test calls functions.
      if (typeof value === 'function') return;
      const loaded = await load(value, needs);
      if (typeof value !== 'string' && !isArray(value)) return expectRefusal(loaded, 'key');
      if ('thrown' in loaded) return expectKeyRefusal(loaded);
      const paid = await loaded.value();
      if ('value' in paid) expect(paid.value).toBe('paid 7');
      else expectKeyRefusal(paid);
    });
  });

  it('is refused when a function gives none, whatever it gives', async () => {
    await forAnyValue(['k', ['k', 'l'], [], [7], ''], async (value) => {
      const pay = expectAccepted(await load(() => value, needs), 'the key');
      const paid = await pay();
      if (isGood(value)) expect(paid).toEqual({ value: 'paid 7' });
      else expectKeyRefusal(paid);
    });
  });
});

type Sections = (locks: LockService, ...args: [never, never]) => Promise<unknown>;

describe.each<[string, string, Sections]>([
  ['withLock', 'Locked', (locks, ...args) => locks.withLock('k', ...args)],
  ['tryWithLock', 'Locked', (locks, ...args) => locks.tryWithLock('k', ...args)],
  ['withPermit', 'Limited', (locks, ...args) => locks.permits('k', ONE).withPermit(...args)],
])('the section of %s', (_name, decorator, call) => {
  const refused = async (name: string, ...args: unknown[]): Promise<void> => {
    const world = new VirtualLocks();
    const outcome = await outcomeOf(() => call(world.locks, ...(args as [never, never])));
    expectRefusal(outcome, name);
    expect(world.requests).toBe(0);
  };

  it('is no generator, whose body would run after the lock, and stands after the options', async () => {
    const generators: unknown[] = [function* () {}, async function* () {}];
    for (const generator of generators) {
      await refused('a generator function', generator);
      await refused(decorator, {}, generator);
    }
    await refused('options before the section', () => 1, { waitMs: 5 });
  });

  it('is a function, or refused before a request is sent', async () => {
    await forAnyValue([], async (value) => {
      if (typeof value !== 'function') await refused('function', undefined, value);
    });
  });
});

describe('the arguments of a lease', () => {
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

describe('what context gives', () => {
  it('is a part of a key, or the key is refused: whatever it is, nothing else is thrown', async () => {
    const key = compileKey('<<$tenant>>', { className: 'Orders', methodName: 'pay', parameters: [] });
    await forAnyValue([{ tenant: 'acme' }, { tenant: 7 }], async (value) => {
      const { manager } = new VirtualLocks();
      const locks = new LockService(manager, () => value as Record<string, unknown>);
      const outcome = await outcomeOf(() => key.render([], (name) => locks.contextValue(name)));
      if ('thrown' in outcome) expectKeyRefusal(outcome);
      else expect(outcome.value).toEqual([String((value as { tenant: unknown }).tenant)]);
    });
  });
});

it('LockKeyError is no LockConfigurationError: the two kinds of refusal are told apart', async () => {
  const outcome = await outcomeOf(() => lockKey('<<', {}));
  expect('thrown' in outcome && outcome.thrown).toBeInstanceOf(LockKeyError);
  expect(() => expectRefusal(outcome, 'key')).toThrow('another kind');
});
