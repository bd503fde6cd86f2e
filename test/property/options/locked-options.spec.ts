import { describe, expect, it } from 'vitest';
import { Locked, LockKeyError } from 'nest-redis-lock';
import { bindLocks } from 'nest-redis-lock/testing';
import { watched } from '../../support/core/core-under-test.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { isKeyOrKeys } from './good-keys.js';
import { CALL_OPTIONS, type Meaning } from './meanings.js';
import { expectAccepted, expectRefusal, outcomeOf } from './refusal.js';
import { VirtualLocks } from './virtual-locks.js';

type LooseDecorator = (target: object, property: string, descriptor: PropertyDescriptor) => void;
const locked = Locked as unknown as (key?: unknown, options?: unknown) => LooseDecorator;

/** Decorates a method, as it happens when its class is loaded. */
const load = (key: unknown, options?: unknown) =>
  outcomeOf(() => {
    class Orders {
      async pay(id: string): Promise<string> {
        return `paid ${id}`;
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'pay')!;
    locked(key, options)(Orders.prototype, 'pay', descriptor);
    Object.defineProperty(Orders.prototype, 'pay', descriptor);
    return Orders;
  });

/** Whether the method runs, on a key that is free or taken. */
const run = (Orders: new () => { pay(id: string): Promise<string> }, { locks, runtime }: VirtualLocks) => {
  const paid = watched(bindLocks(new Orders(), locks).pay('7'));
  return runtime.pass(400 * 24 * 3_600_000).then(() => paid);
};

const { signal } = new AbortController();

const isFunction = (value: unknown): boolean => typeof value === 'function';

const OPTIONS: Readonly<Record<string, Pick<Meaning, 'allows' | 'examples'>>> = {
  ...CALL_OPTIONS,
  signal: { allows: (value) => value === signal, examples: [signal] },
  onBusy: { allows: (value) => value === 'skip' || isFunction(value), examples: ['skip', () => 'busy'] },
};

describe('an option of @Locked', () => {
  it.each(Object.entries(OPTIONS))(
    '%s: is refused by name when the class is loaded, or the method runs',
    async (name, { allows, examples }) => {
      await forAnyValue(examples, async (value) => {
        const outcome = await load('order:<<id>>', { [name]: value });
        if (value !== undefined && !allows(value)) {
          expectRefusal(outcome, name);
          return expectRefusal(outcome, 'Orders.pay');
        }
        const paid = await run(expectAccepted(outcome, name), new VirtualLocks());
        expect(paid.value).toBe('paid 7');
      });
    },
  );

  it('onBusy: "skip" gives undefined, a function runs in the place of the method, undefined throws', async () => {
    const onBusy = async (value: unknown) => {
      const world = new VirtualLocks();
      world.takeElsewhere('order:7');
      return run(expectAccepted(await load('order:<<id>>', { onBusy: value }), 'onBusy'), world);
    };
    expect(await onBusy('skip')).toMatchObject({ state: 'fulfilled', value: undefined });
    expect(await onBusy((_error: unknown, id: string) => `later ${id}`)).toMatchObject({ value: 'later 7' });
    expect((await onBusy(undefined)).error).toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('service: a name, of which the module is missed at the call, or refused by name', async () => {
    await forAnyValue(['', 'billing'], async (value) => {
      const outcome = await load('order:<<id>>', { service: value });
      if (value !== undefined && typeof value !== 'string') return expectRefusal(outcome, 'service');
      const instance = new (expectAccepted(outcome, 'service'))();
      expectRefusal(await outcomeOf(() => instance.pay('7')), 'forRoot');
    });
  });

  it('all of them: an object, or undefined; anything else is refused', async () => {
    await forAnyValue([5_000, () => 1, [1_000]], async (value) => {
      if (typeof value === 'object' && value !== null && !isRefused(value)) return;
      const outcome = await load('order:<<id>>', value);
      if (value === undefined) expectAccepted(outcome, 'options');
      else expectRefusal(outcome, 'options?');
    });
  });
});

/** Objects that are no options: an array, one with something else in it, or one that lets nobody look. */
const isRefused = (value: object): boolean => {
  try {
    return Array.isArray(value) || Object.values(value).some((one) => one !== undefined);
  } catch {
    return true;
  }
};

describe('the key of @Locked', () => {
  it('is a template, several, a function, or options in its place; anything else is refused at load', async () => {
    await forAnyValue(['order:<<id>>', ['a', 'b:<<0>>'], 'order:<<user>>', '<<', []], async (value) => {
      // What a function throws is its own; what it gives is looked at below.
      if (typeof value === 'function') return;
      const outcome = await load(value);
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
    else expect(error).toBeInstanceOf(LockKeyError);
  };

  it('is refused when a function gives none, whatever it gives', async () => {
    await forAnyValue(['k', ['k', 'l'], [], [7], ''], async (value) => {
      const Orders = expectAccepted(await load(() => value), 'the key');
      const { state, error } = await run(Orders, new VirtualLocks());
      expect(state).toBe(isKeyOrKeys(value) ? 'fulfilled' : 'rejected');
      if (state === 'rejected') expect(error).toBeInstanceOf(LockKeyError);
    });
  });
});
