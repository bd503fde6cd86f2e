import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  getLockServiceToken,
  LockService,
  RedisLockModule,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { MemoryStore } from 'nest-redis-lock/testing';
import { compileKey } from '../../../lib/key/key-template.js';
import { LockKeyError, LockLostError } from '../../../lib/core/errors/lock.errors.js';
import { resolveOptions, type ResolvedOptions } from '../../../lib/redis-lock.options.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { runs } from '../../support/property/runs.js';
import { MODULE_OPTIONS } from './meanings.js';
import { expectAccepted, expectRefusal, outcomeOf } from './refusal.js';
import { VirtualLocks } from './virtual-locks.js';

const apps = useApps();

const resolve = (options: unknown) => outcomeOf(() => resolveOptions(options as RedisLockModuleOptions));

const withStore = (options: object): object => ({ store: new MemoryStore(), ...options });

const each = Object.entries(MODULE_OPTIONS);

describe('an option of RedisLockModule.forRoot that concerns the locks', () => {
  it.each(each)('%s: a value does what it says, or is refused by name', async (name, option) => {
    await forAnyValue(option.examples, async (value) => {
      const outcome = await resolve(withStore({ [name]: value }));
      if (value !== undefined && !option.allows(value)) return expectRefusal(outcome, name);
      const { settings } = expectAccepted(outcome, name);
      if (value !== undefined) await option.verify(new VirtualLocks(settings), {}, value as never);
    });
  });

  it.each(each)('%s: an explicit undefined keeps the default', async (name, { verify, otherwise }) => {
    const { settings } = resolveOptions(withStore({ [name]: undefined }));
    await verify(new VirtualLocks(settings), {}, otherwise as never);
  });
});

interface Row {
  readonly allows: (value: unknown) => boolean;
  readonly examples: readonly unknown[];
  readonly of: (resolved: ResolvedOptions) => unknown;
  readonly otherwise: unknown;
}

const isWhole =
  (min: number, max = Infinity) =>
  (value: unknown): boolean =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;

const isFunction = (value: unknown): boolean => typeof value === 'function';

/** What of an interceptor's option there is to see is what it was resolved to; test/nest sees what it does. */
const REST: Readonly<Record<string, Row>> = {
  commandTimeoutMs: {
    allows: isWhole(1, 29_999),
    examples: [1, 2_000, 29_999],
    of: ({ commandTimeoutMs }) => commandTimeoutMs,
    otherwise: 2_000,
  },
  context: {
    allows: isFunction,
    examples: [() => ({})],
    of: ({ context }) => context,
    otherwise: undefined,
  },
  takenStatus: {
    allows: isWhole(400, 599),
    examples: [400, 423, 599],
    of: ({ interceptor }) => interceptor?.takenStatus,
    otherwise: 423,
  },
  retryAfterSeconds: {
    allows: isWhole(0),
    examples: [0, 1, 3_600],
    of: ({ interceptor }) => interceptor?.retryAfterSeconds,
    otherwise: 1,
  },
};

const inPlace = (name: string, value: unknown): object =>
  name in { takenStatus: 0, retryAfterSeconds: 0 } ? { interceptor: { [name]: value } } : { [name]: value };

describe('another option of RedisLockModule.forRoot', () => {
  it.each(Object.entries(REST))('%s: a value is taken as it is, or refused by name', async (name, row) => {
    await forAnyValue(row.examples, async (value) => {
      const outcome = await resolve(withStore(inPlace(name, value)));
      if (value !== undefined && !row.allows(value)) return expectRefusal(outcome, name);
      const expected = value === undefined ? row.otherwise : value;
      // == for what is 0 and -0 alike; both are primitives or the same function.
      expect(row.of(expectAccepted(outcome, name)) === expected).toBe(true);
    });
  });

  it('interceptor: true, false, an object, or refused by name', async () => {
    await forAnyValue([true, false, {}], async (value) => {
      const outcome = await resolve(withStore({ interceptor: value }));
      if (value === false) expect(expectAccepted(outcome, 'interceptor').interceptor).toBeUndefined();
      else if (value === true || value === undefined || isReadable(value)) {
        const { interceptor } = expectAccepted(outcome, 'interceptor');
        expect(interceptor).toEqual({ takenStatus: 423, retryAfterSeconds: 1 });
      } else expectRefusal(outcome, 'interceptor');
    });
  });

  it('store: a store, or refused by name', async () => {
    const lookalikes = [
      MemoryStore,
      {},
      { kinds: {} },
      Object.create(new MemoryStore(), { kinds: { value: {} } }),
      Object.create(new MemoryStore(), { kinds: { value: { exclusive: { acquire: 7 } } } }),
      Object.create(new MemoryStore(), { inspect: { value: 7 } }),
    ];
    await forAnyValue(lookalikes, async (value) => {
      const outcome = await resolve({ store: value });
      // Without one the error is that there is none.
      expectRefusal(outcome, 'store');
    });
    const store = new MemoryStore();
    expect(expectAccepted(await resolve({ store }), 'store').store).toBe(store);
  });

  it('name: a string names the service, anything else is refused by name', async () => {
    await forAnyValue(['', 'billing', '__proto__'], async (value) => {
      const outcome = await outcomeOf(() => RedisLockModule.forRoot(withStore({ name: value })));
      if (value !== undefined && typeof value !== 'string') return expectRefusal(outcome, 'name');
      expect(expectAccepted(outcome, 'name').exports).toContain(getLockServiceToken(value));
    });
  });

  it('the options as a whole: an object, or refused', async () => {
    await forAnyValue([], async (value) => {
      expectRefusal(await resolve(value), 'options?|redis|store');
    });
  });
});

const isReadable = (value: unknown): boolean => {
  try {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    return Object.values(value).every((one) => one === undefined);
  } catch {
    return false;
  }
};

describe('what context gives', () => {
  it('is a part of a key, or the key is refused: whatever it is, nothing else is thrown', async () => {
    const key = compileKey('<<$tenant>>', { className: 'Orders', methodName: 'pay', parameters: [] });
    await forAnyValue([{ tenant: 'acme' }, { tenant: 7 }], async (value) => {
      const { manager } = new VirtualLocks();
      const locks = new LockService(manager, () => value as Record<string, unknown>);
      const outcome = await outcomeOf(() => key.render([], (name) => locks.contextValue(name)));
      if ('thrown' in outcome) expect(outcome.thrown).toBeInstanceOf(LockKeyError);
      else expect(outcome.value).toEqual([String((value as { tenant: unknown }).tenant)]);
    });
  });
});

describe('several options at once', () => {
  const option = fc
    .constantFrom(...each)
    .chain(([name, { allows, examples }]) =>
      fc
        .oneof(fc.constantFrom(...examples), fc.constantFrom(undefined, null, -1, 0.5, 'x', {}, [], 1n))
        .map((value) => ({ name, value, isGood: value === undefined || allows(value) })),
    );
  const several = fc.uniqueArray(option, { selector: ({ name }) => name, maxLength: 6 });

  it('start an app that locks, or keep it from starting by an error that names one that is wrong', async () => {
    await fc.assert(
      fc.asyncProperty(several, async (given) => {
        const options = Object.fromEntries(given.map(({ name, value }) => [name, value]));
        const starting = await outcomeOf(() => apps.context(rootModule(withStore(options))));
        const wrong = given.filter(({ isGood }) => !isGood);
        if (wrong.length > 0) return expectRefusal(starting, `(${wrong.map(({ name }) => name).join('|')})`);
        const app = expectAccepted(starting, 'the options');
        const outcome = await outcomeOf(() => app.get(LockService).withLock('k', () => 'ran'));
        // A lease of 1 ms can be over before its section begins.
        if ('thrown' in outcome && options.leaseMs === 1)
          expect(outcome.thrown).toBeInstanceOf(LockLostError);
        else expect(expectAccepted(outcome, 'the options')).toBe('ran');
        await apps.close();
      }),
      runs(100),
    );
  });
});
