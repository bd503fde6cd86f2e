// @Limited shares the machinery of @Locked, of which the other specs here tell; these are the promises of its own.
import 'reflect-metadata';
import { Readable } from 'node:stream';
import { firstValueFrom, Observable, of, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  currentLease,
  Limited,
  LIMITED_METADATA,
  LockConfigurationError,
  Locked,
  LOCKED_METADATA,
  LockKeyError,
  LockNotAcquiredError,
  type LimitedMetadata,
  type LockedMetadata,
  type LockService,
} from 'nest-redis-lock';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';
import { deferred, until, type Deferred } from '../../support/async.js';
import { isIdle, lockedInstance } from './fixture.js';

/** For what the types refuse already: code without types can still do it. */
const untyped = Limited as unknown as (...args: unknown[]) => MethodDecorator;

let open: Deferred<void>;
let now: number;
let max: number;
const failure = new Error('the work failed');

beforeEach(() => {
  open = deferred();
  [now, max] = [0, 0];
});
afterEach(() => open.resolve());

/** Goes on until the test opens. */
const work = async (): Promise<void> => {
  max = Math.max(max, ++now);
  await open.promise;
  now--;
};

class Crm {
  @Limited('crm:<<0>>', { permits: 2, waitMs: 10_000 })
  async promise(_tenant: string): Promise<string> {
    await work();
    return currentLease().key;
  }

  @Limited('crm:<<0>>', { permits: 2, waitMs: 10_000 })
  observable(_tenant: string): Observable<string> {
    return new Observable((subscriber) => {
      void work().then(() => {
        subscriber.next(currentLease().key);
        subscriber.complete();
      });
    });
  }

  @Limited('crm:<<0>>', { permits: 2, waitMs: 10_000 })
  async *generator(_tenant: string): AsyncGenerator<string> {
    await work();
    yield currentLease().key;
  }

  @Limited('crm:<<0>>', { permits: 2, waitMs: 10_000 })
  async stream(_tenant: string): Promise<Readable> {
    await work();
    return Readable.from([currentLease().key]);
  }

  @Limited((tenant: string) => `crm:${tenant}`, { permits: 2, waitMs: 10_000 })
  async byFunction(_tenant: string): Promise<string> {
    await work();
    return currentLease().key;
  }

  @Limited('sync', { permits: 1, onBusy: 'skip' })
  async skip(): Promise<string | undefined> {
    return currentLease().key;
  }

  @Limited('busy', { permits: 1, onBusy: (error) => error.key })
  async fallBack(): Promise<string | undefined> {
    return 'ran';
  }

  @Limited('failing', { permits: 1 })
  async fail(): Promise<void> {
    throw failure;
  }

  @Limited('token', { permits: 1 })
  async token(): Promise<number> {
    return currentLease().fencingToken;
  }

  @Limited('nested', { permits: 2 })
  async nested(depth: number): Promise<number> {
    return depth === 0 ? 0 : 1 + (await this.nested(depth - 1));
  }

  @Limited('unsaid')
  async withoutNumber(): Promise<string> {
    return 'ran';
  }
}

const all = async (items: AsyncIterable<string>): Promise<string[]> => {
  const list: string[] = [];
  for await (const item of items) list.push(item);
  return list;
};

const STYLES: Readonly<Record<string, (crm: Crm) => Promise<unknown>>> = {
  'a promise': (crm) => crm.promise('a'),
  'an Observable': (crm) => firstValueFrom(crm.observable('a')),
  'a generator': async (crm) => (await all(crm.generator('a')))[0],
  'a stream': async (crm) => (await all(await crm.stream('a')))[0],
  'a key function': (crm) => crm.byFunction('a'),
};

describe('a limited method', () => {
  it.each(Object.entries(STYLES))('runs as often at once as there are permits: %s', async (_style, call) => {
    const { instance, locks } = lockedInstance(Crm);
    const calls = Array.from({ length: 5 }, () => call(instance));
    await until(() => now === 2);
    expect((await locks.inspect('crm:a'))?.holders).toHaveLength(2);
    open.resolve();
    expect(await Promise.all(calls)).toEqual(Array(5).fill('crm:a'));
    expect(max).toBe(2);
    await until(() => isIdle(locks));
    expect(await locks.inspect('crm:a')).toBeNull();
  });

  it('counts each key for itself', async () => {
    const { instance } = lockedInstance(Crm);
    const calls = ['a', 'a', 'b', 'b'].map((tenant) => instance.promise(tenant));
    await until(() => now === 4);
    open.resolve();
    await Promise.all(calls);
  });

  it('shares its permits with withPermit of the same key, and not with locks of other keys', async () => {
    const { instance, locks } = lockedInstance(Crm);
    await locks.permits('busy', { permits: 1 }).withPermit(async () => {
      expect(await instance.fallBack()).toBe('busy');
    });
    expect(await instance.fallBack()).toBe('ran');
  });

  it('skips when no permit is free', async () => {
    const { instance, locks } = lockedInstance(Crm);
    expect(await instance.skip()).toBe('sync');
    await using _other = await locks.permits('sync', { permits: 1 }).acquire();
    expect(await instance.skip()).toBeUndefined();
  });

  it('waits for a permit no longer than waitMs, and then throws', async () => {
    const { instance, locks } = lockedInstance(Crm);
    await using _other = await locks.permits('failing', { permits: 1 }).acquire();
    await expect(instance.fail()).rejects.toBeInstanceOf(LockNotAcquiredError);
  });

  it('passes the errors of its body on as they are, and gives the permit back', async () => {
    const { instance, locks } = lockedInstance(Crm);
    await expect(instance.fail()).rejects.toBe(failure);
    expect(await locks.inspect('failing')).toBeNull();
  });

  it('has a lease without a fencing token, and is told that permits have none', async () => {
    const { instance } = lockedInstance(Crm);
    await expect(instance.token()).rejects.toThrow(LockConfigurationError);
    await expect(instance.token()).rejects.toThrow(/no fencing token for "token": .* permit/);
  });

  it('that calls itself takes one permit more each time', async () => {
    const { instance } = lockedInstance(Crm);
    await expect(instance.nested(1)).resolves.toBe(1);
    await expect(instance.nested(2)).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('without a number counts by the one that is there, and fails where there is none', async () => {
    const { instance, locks } = lockedInstance(Crm);
    await expect(instance.withoutNumber()).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await using _one = await locks.permits('unsaid', { permits: 2 }).acquire();
    await expect(instance.withoutNumber()).resolves.toBe('ran');
  });

  it('is shown by held() and inspect() as a permit', async () => {
    const locks = createTestingLocks();
    await using lease = await locks.permits('crm', { permits: 2 }).acquire();
    expect(locks.held()).toMatchObject([{ key: 'crm', kind: 'permit', fencingToken: undefined }]);
    expect(await locks.inspect('crm')).toMatchObject({
      kind: 'permit',
      holders: [{ owner: lease.owner, count: 1, remainingMs: expect.any(Number) as number }],
      waiting: [],
    });
  });
});

describe('@Limited beside @Locked on one method', () => {
  class Orders {
    @Locked('order:<<0>>', { waitMs: 10_000 })
    @Limited('bank', { permits: 2, waitMs: 10_000 })
    async lockedFirst(_id: string): Promise<readonly string[]> {
      await work();
      return [currentLease('bank').key, currentLease(`order:${_id}`).key];
    }

    @Limited('bank', { permits: 2, waitMs: 10_000 })
    @Locked('order:<<0>>', { waitMs: 10_000 })
    async limitedFirst(_id: string): Promise<readonly string[]> {
      await work();
      return [currentLease('bank').key, currentLease(`order:${_id}`).key];
    }
  }

  it.each(['lockedFirst', 'limitedFirst'] as const)('holds both, whichever is above: %s', async (method) => {
    const { instance, locks } = lockedInstance(Orders);
    const calls = ['1', '2', '3'].map((id) => instance[method](id));
    await until(() => now === 2);
    expect(
      locks
        .held()
        .filter(({ key }) => key === 'bank')
        .map(({ kind }) => kind),
    ).toEqual(['permit', 'permit']);
    const taken = await Promise.all(['1', '2'].map((id) => locks.tryAcquire(`order:${id}`)));
    expect(taken).toEqual([null, null]);
    open.resolve();
    expect(await Promise.all(calls)).toEqual(['1', '2', '3'].map((id) => ['bank', `order:${id}`]));
    expect(max).toBe(2);
    expect(isIdle(locks)).toBe(true);
  });

  it.each(['lockedFirst', 'limitedFirst'] as const)('tells reflectors of both: %s', (method) => {
    const wrapper = Object.getOwnPropertyDescriptor(Orders.prototype, method)!.value as object;
    const limited = Reflect.getMetadata(LIMITED_METADATA, wrapper) as LimitedMetadata;
    const locked = Reflect.getMetadata(LOCKED_METADATA, wrapper) as LockedMetadata;
    expect(limited).toEqual({ key: 'bank', options: { permits: 2, waitMs: 10_000 } });
    expect(locked).toEqual({ key: 'order:<<0>>', options: { waitMs: 10_000 } });
    expect(Object.isFrozen(limited) && Object.isFrozen(limited.options)).toBe(true);
  });

  it('with the same key is refused when the class is loaded, since a key is of one kind', () => {
    const both = () => {
      class Jobs {
        @Locked('nightly-report')
        @Limited('nightly-report', { permits: 3 })
        async run(): Promise<void> {}
      }
      return Jobs;
    };
    expect(both).toThrow(LockConfigurationError);
    expect(both).toThrow(/^Jobs\.run has two decorators with the same key/);
  });
});

/** Loads a class whose method is limited in this way. */
const declaring = (...args: unknown[]): Error => {
  try {
    class Orders {
      @untyped(...args)
      async pay(id: string): Promise<string> {
        return id;
      }
    }
    expect(Orders).toBeTypeOf('function');
  } catch (error) {
    return error as Error;
  }
  return expect.fail('the class was loaded');
};

describe('what is refused when the class is loaded', () => {
  it('several keys, also of a function, which is asked at the call', async () => {
    const error = declaring(['a:<<id>>', 'b:<<id>>'], { permits: 3 });
    expect(error).toBeInstanceOf(LockKeyError);
    expect(error.message).toMatch(/^Orders\.pay: @Limited takes one key/);

    class Orders {
      @untyped((id: string) => [id], { permits: 3 })
      async pay(_id: string): Promise<void> {}
    }
    const { instance } = lockedInstance(Orders);
    await expect(instance.pay('1')).rejects.toThrow(LockKeyError);
    await expect(instance.pay('1')).rejects.toThrow('Orders.pay: @Limited takes one key');
  });

  it('no parentheses, a class, a static method, a method that is not async: each names @Limited', () => {
    const bare = Limited as unknown as MethodDecorator & ClassDecorator;
    const onClass = untyped('key') as unknown as ClassDecorator;
    const declarations: (() => unknown)[] = [
      () => {
        class Orders {
          @bare
          async pay(): Promise<void> {}
        }
        return Orders;
      },
      () => {
        @bare
        class Orders {}
        return Orders;
      },
      () => {
        @onClass
        class Orders {}
        return Orders;
      },
      () => {
        class Orders {
          @untyped('key')
          static async pay(): Promise<void> {}
        }
        return Orders;
      },
      () => {
        class Orders {
          @untyped('key')
          *pay(): Generator<number> {}
        }
        return Orders;
      },
      () => {
        class Orders {
          @untyped('key', {}, {})
          async pay(): Promise<void> {}
        }
        return Orders;
      },
    ];
    for (const declare of declarations) {
      expect(declare).toThrow(LockConfigurationError);
      expect(declare).toThrow(/@Limited/);
      expect(declare).not.toThrow(/@Locked/);
    }
  });
});

describe('a limited method never runs without its permit', () => {
  const UNBOUND = /^Crm\.skip is @Limited, but /;

  it('on an object without a service', async () => {
    await expect(new Crm().skip()).rejects.toThrow(UNBOUND);
  });

  it('with a service that has no permits, such as a mock of yesterday', async () => {
    const mock = { withLock: () => Promise.resolve() } as unknown as LockService;
    const crm = bindLocks(new Crm(), mock);
    await expect(crm.skip()).rejects.toThrow(LockConfigurationError);
    await expect(crm.skip()).rejects.toThrow(/is @Limited, but .* a mock without permits/);
  });

  it('with a mock that does not run it', async () => {
    const crm = bindLocks(new Crm(), { permits: () => undefined } as unknown as LockService);
    const notRun = /is @Limited, but its LockService did not run it: it is a mock/;
    await expect(crm.skip()).rejects.toThrow(notRun);
    await expect(firstValueFrom(crm.observable('a'))).rejects.toThrow(notRun);
    await expect(crm.generator('a').next()).rejects.toThrow(notRun);
    expect(max).toBe(0);
  });

  it('and a locked one needs no permits', async () => {
    class Orders {
      @Locked('order')
      async pay(): Promise<string> {
        return 'paid';
      }
    }
    const mock = { withLock: (_key: string, _options: object, run: () => unknown) => run() };
    await expect(bindLocks(new Orders(), mock as unknown as LockService).pay()).resolves.toBe('paid');
  });
});

describe('in tests without locks', () => {
  it('mode off: everybody gets a permit at once, whatever the number, and without one', async () => {
    const crm = bindLocks(new Crm(), createTestingLocks('off'));
    const calls = Array.from({ length: 5 }, () => crm.promise('a'));
    await until(() => now === 5);
    open.resolve();
    await Promise.all(calls);
    await expect(crm.withoutNumber()).resolves.toBe('ran');
    await expect(crm.nested(5)).resolves.toBe(5);
    expect(await firstValueFrom(of(await crm.skip()).pipe(toArray()))).toEqual(['sync']);
  });
});
