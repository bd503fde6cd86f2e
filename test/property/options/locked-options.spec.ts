import { describe, expect, it } from 'vitest';
import { Limited, Locked, LockKeyError } from 'nest-redis-lock';
import { bindLocks } from 'nest-redis-lock/testing';
import { watched } from '../../support/core/core-under-test.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { isKeyOrKeys, isLockable } from './good-keys.js';
import { CALL_OPTIONS, PERMIT_OPTIONS, type Meaning } from './meanings.js';
import { expectAccepted, expectRefusal, outcomeOf } from './refusal.js';
import { VirtualLocks } from './virtual-locks.js';

type LooseDecorator = (target: object, property: string, descriptor: PropertyDescriptor) => void;
type Decorator = (key?: unknown, options?: unknown) => LooseDecorator;
type Options = Readonly<Record<string, Pick<Meaning, 'allows' | 'examples'>>>;

const isFunction = (value: unknown): boolean => typeof value === 'function';

const { signal } = new AbortController();

const ON_METHODS: Options = {
  signal: { allows: (value) => value === signal, examples: [signal] },
  onBusy: { allows: (value) => value === 'skip' || isFunction(value), examples: ['skip', () => 'busy'] },
};

interface Subject {
  readonly decorator: Decorator;
  readonly options: Options;
  /** Given beside the one that is looked at, so that the method can run. */
  readonly needs: object;
  /** Leaves nothing for the method to take. */
  readonly exhaust: (world: VirtualLocks, key: string) => void;
  readonly isKey: (value: unknown) => boolean;
}

const SUBJECTS: readonly (readonly [string, Subject])[] = [
  [
    '@Locked',
    {
      decorator: Locked,
      options: { ...CALL_OPTIONS, ...ON_METHODS },
      needs: {},
      exhaust: (world, key) => void world.takeElsewhere(key),
      isKey: isKeyOrKeys,
    },
  ],
  [
    '@Limited',
    {
      decorator: Limited,
      options: { ...PERMIT_OPTIONS, ...ON_METHODS },
      needs: { permits: 1 },
      exhaust: (world, key) => world.takePermitElsewhere(key),
      isKey: isLockable,
    },
  ],
];

/** Decorates a method, as it happens when its class is loaded. */
const load = (decorator: Decorator, key: unknown, options?: unknown) =>
  outcomeOf(() => {
    class Orders {
      async pay(id: string): Promise<string> {
        return `paid ${id}`;
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'pay')!;
    decorator(key, options)(Orders.prototype, 'pay', descriptor);
    Object.defineProperty(Orders.prototype, 'pay', descriptor);
    return Orders;
  });

/** Whether the method runs, on a key that is free or taken. */
const run = (Orders: new () => { pay(id: string): Promise<string> }, { locks, runtime }: VirtualLocks) => {
  const paid = watched(bindLocks(new Orders(), locks).pay('7'));
  return runtime.pass(400 * 24 * 3_600_000).then(() => paid);
};

describe.each(SUBJECTS)('an option of %s', (_name, { decorator, options, needs, exhaust }) => {
  it.each(Object.entries(options))(
    '%s: is refused by name when the class is loaded, or the method runs',
    async (name, { allows, examples }) => {
      await forAnyValue(examples, async (value) => {
        const outcome = await load(decorator, 'order:<<id>>', { ...needs, [name]: value });
        if (value !== undefined && !allows(value)) {
          expectRefusal(outcome, name);
          return expectRefusal(outcome, 'Orders.pay');
        }
        const paid = await run(expectAccepted(outcome, name), new VirtualLocks());
        // Without a number the one of the store counts, and there is none.
        if (name === 'permits' && value === undefined) expect(paid.error).toMatchObject(NO_NUMBER);
        else expect(paid.value).toBe('paid 7');
      });
    },
  );

  it('onBusy: "skip" gives undefined, a function runs in the place of the method, undefined throws', async () => {
    const onBusy = async (value: unknown) => {
      const world = new VirtualLocks();
      exhaust(world, 'order:7');
      const outcome = await load(decorator, 'order:<<id>>', { ...needs, onBusy: value });
      return run(expectAccepted(outcome, 'onBusy'), world);
    };
    expect(await onBusy('skip')).toMatchObject({ state: 'fulfilled', value: undefined });
    expect(await onBusy((_error: unknown, id: string) => `later ${id}`)).toMatchObject({ value: 'later 7' });
    expect((await onBusy(undefined)).error).toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('service: a name, of which the module is missed at the call, or refused by name', async () => {
    await forAnyValue(['', 'billing'], async (value) => {
      const outcome = await load(decorator, 'order:<<id>>', { service: value });
      if (value !== undefined && typeof value !== 'string') return expectRefusal(outcome, 'service');
      const instance = new (expectAccepted(outcome, 'service'))();
      expectRefusal(await outcomeOf(() => instance.pay('7')), 'forRoot');
    });
  });

  it('all of them: an object, or undefined; anything else is refused', async () => {
    await forAnyValue([5_000, () => 1, [1_000]], async (value) => {
      if (typeof value === 'object' && value !== null && !isRefused(value)) return;
      const outcome = await load(decorator, 'order:<<id>>', value);
      if (value === undefined) expectAccepted(outcome, 'options');
      else expectRefusal(outcome, 'options?');
    });
  });
});

const NO_NUMBER = { code: 'LOCK_STORE_FAILED', message: expect.stringContaining('permits') as string };

/** Objects that are no options: an array, one with something else in it, or one that lets nobody look. */
const isRefused = (value: object): boolean => {
  try {
    return Array.isArray(value) || Object.values(value).some((one) => one !== undefined);
  } catch {
    return true;
  }
};

describe.each(SUBJECTS)('the key of %s', (name, { decorator, needs, isKey: isGood }) => {
  it('is a template, a function, or options in its place; anything else is refused at load', async () => {
    await forAnyValue(['order:<<id>>', ['a', 'b:<<0>>'], 'order:<<user>>', '<<', []], async (value) => {
      // What a function throws is its own; what it gives is looked at below.
      if (typeof value === 'function') return;
      const outcome = await load(decorator, value, typeof value === 'string' ? needs : undefined);
      if ('value' in outcome) return expectCallable(outcome.value);
      const { thrown } = outcome;
      // A key that is none, or options that cannot be read.
      if (!(thrown instanceof LockKeyError)) expectRefusal(outcome, 'options?');
    });
  });

  /** What was accepted at load gives a lock, or says at the call what is wrong with the key. */
  const expectCallable = async (Orders: new () => { pay(id: string): Promise<string> }): Promise<void> => {
    const { state, value, error } = await run(Orders, new VirtualLocks());
    if (state === 'fulfilled') expect(value).toBe('paid 7');
    // Options in the place of the key have no number of permits.
    else if (name === '@Limited' && !(error instanceof LockKeyError)) expect(error).toMatchObject(NO_NUMBER);
    else expect(error).toBeInstanceOf(LockKeyError);
  };

  it('is refused when a function gives none, whatever it gives', async () => {
    await forAnyValue(['k', ['k', 'l'], [], [7], ''], async (value) => {
      const Orders = expectAccepted(await load(decorator, () => value, needs), 'the key');
      const { state, error } = await run(Orders, new VirtualLocks());
      expect(state).toBe(isGood(value) ? 'fulfilled' : 'rejected');
      if (state === 'rejected') expect(error).toBeInstanceOf(LockKeyError);
    });
  });
});
