import 'reflect-metadata';
import { EMPTY, firstValueFrom, Observable, of, toArray } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { currentLease, LockNotAcquiredError, Locked, type LockService } from 'nest-redis-lock';
import { collectUnhandledRejections } from '../../support/async.js';
import { isIdle, lockedInstance } from './fixture.js';

const failure = new Error('the fallback failed');
const bodies: string[] = [];
const seen: { self: unknown; error: LockNotAcquiredError; args: unknown[] }[] = [];

/** A fallback that notes how it was called. */
function noting<R>(result: (id: string) => R) {
  return function (this: unknown, error: LockNotAcquiredError, ...args: never[]): R {
    seen.push({ self: this, error, args });
    return result((args as unknown[])[0] as string);
  };
}

const failing = (): never => {
  throw failure;
};

class Orders {
  @Locked('order:<<id>>', { onBusy: 'skip' })
  async skipPromise(id: string): Promise<string | undefined> {
    bodies.push(id);
    return id;
  }

  @Locked('order:<<id>>', { onBusy: 'skip' })
  skipObservable(id: string): Observable<string> {
    bodies.push(id);
    return of(id);
  }

  @Locked('order:<<id>>', { onBusy: 'skip' })
  async *skipGenerator(id: string): AsyncGenerator<string, string | undefined> {
    bodies.push(id);
    yield id;
    return 'end';
  }

  @Locked('order:<<id>>', { onBusy: noting((id) => `fallback ${id}`) })
  async fallbackPromise(id: string, _more: number): Promise<string> {
    return id;
  }

  @Locked('order:<<id>>', { onBusy: noting((id) => of(`fallback ${id}`)) })
  fallbackObservable(id: string, _more: number): Observable<string> {
    return of(id);
  }

  @Locked('order:<<id>>', {
    onBusy: noting(async function* (id) {
      yield `fallback ${id}`;
    }),
  })
  async *fallbackGenerator(id: string, _more: number): AsyncGenerator<string> {
    yield id;
  }

  @Locked('order', { onBusy: failing })
  async failPromise(): Promise<void> {}

  @Locked('order', { onBusy: failing })
  failObservable(): Observable<never> {
    return EMPTY;
  }

  @Locked('order', { onBusy: failing })
  async *failGenerator(): AsyncGenerator<never> {}

  @Locked('order', { onBusy: () => 7 })
  oddObservable(): Observable<never> {
    return EMPTY;
  }

  /** The body wants a lock of its own, which is taken. */
  @Locked('order:<<id>>', { onBusy: 'skip' })
  async inner(id: string, locks: LockService): Promise<void> {
    bodies.push(id);
    await locks.withLock('inner', () => undefined);
  }

  @Locked('order:<<id>>')
  async whole(id: string): Promise<string | undefined> {
    return currentLease().call(this, this.reads, id);
  }

  @Locked('order:<<id>>', { onBusy: 'skip', mode: 'read' })
  async reads(id: string): Promise<string | undefined> {
    return id;
  }
}

const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

const start = () => lockedInstance(Orders);
beforeEach(() => {
  bodies.length = 0;
  seen.length = 0;
});

describe('onBusy: skip', () => {
  it('gives undefined from a promise, and does not run the body', async () => {
    const { instance, locks } = start();
    const lease = await locks.acquire('order:1');
    await expect(instance.skipPromise('1')).resolves.toBeUndefined();
    expect(bodies).toEqual([]);
    await lease.release();
    await expect(instance.skipPromise('1')).resolves.toBe('1');
    expect(isIdle(locks)).toBe(true);
  });

  it('gives an empty Observable', async () => {
    const { instance, locks } = start();
    const lease = await locks.acquire('order:1');
    await expect(firstValueFrom(instance.skipObservable('1').pipe(toArray()))).resolves.toEqual([]);
    expect(bodies).toEqual([]);
    await lease.release();
    await expect(firstValueFrom(instance.skipObservable('1').pipe(toArray()))).resolves.toEqual(['1']);
  });

  it('gives an empty generator that returns undefined', async () => {
    const { instance, locks } = start();
    const lease = await locks.acquire('order:1');
    await expect(instance.skipGenerator('1').next()).resolves.toEqual({ done: true, value: undefined });
    expect(bodies).toEqual([]);
    await lease.release();
    expect(await all(instance.skipGenerator('1'))).toEqual(['1']);
  });

  it('does not wait, however patient the module is; waitMs: 0 says the same', async () => {
    class Jobs {
      @Locked('job', { onBusy: 'skip' })
      async hasty(): Promise<string | undefined> {
        return 'ran';
      }

      @Locked('job', { onBusy: 'skip', waitMs: 0 })
      async saysSo(): Promise<string | undefined> {
        return 'ran';
      }
    }
    const { instance, locks } = lockedInstance(Jobs, 60_000);
    const lease = await locks.acquire('job');
    await expect(instance.hasty()).resolves.toBeUndefined();
    await expect(instance.saysSo()).resolves.toBeUndefined();
    await lease.release();
    await expect(instance.saysSo()).resolves.toBe('ran');
  });

  it('does not swallow the error of another lock that the body wanted', async () => {
    const { instance, locks } = start();
    const lease = await locks.acquire('inner');
    await expect(instance.inner('1', locks)).rejects.toMatchObject({ code: 'LOCK_TAKEN', key: 'inner' });
    expect(bodies).toEqual(['1']);
    await lease.release();
  });

  it('does not hide that the call cannot nest', async () => {
    const { instance } = start();
    await expect(instance.whole('1')).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
  });

  it('does not swallow a key that cannot be rendered', async () => {
    const { instance } = start();
    await expect(instance.skipPromise('')).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
  });
});

describe('onBusy: a fallback', () => {
  it('may be asynchronous in the place of an Observable', async () => {
    class Prices {
      @Locked('price', { onBusy: async () => 'cached' })
      read(): Observable<string> {
        return of('fresh');
      }
    }
    const { instance, locks } = lockedInstance(Prices);
    await using _lease = await locks.acquire('price');
    await expect(firstValueFrom(instance.read())).resolves.toBe('cached');
  });

  it.each([
    ['a promise', (orders: Orders) => orders.fallbackPromise('1', 2)],
    ['an Observable', (orders: Orders) => firstValueFrom(orders.fallbackObservable('1', 2))],
    ['a generator', async (orders: Orders) => (await all(orders.fallbackGenerator('1', 2)))[0]],
  ])(
    'runs in the place of the method, with its this, the error and the arguments: %s',
    async (_style, call) => {
      const { instance, locks } = start();
      const lease = await locks.acquire('order:1');
      await expect(call(instance)).resolves.toBe('fallback 1');
      expect(seen).toEqual([{ self: instance, error: expect.any(LockNotAcquiredError), args: ['1', 2] }]);
      expect(seen[0]?.error.key).toBe('order:1');
      await lease.release();
      await expect(call(instance)).resolves.toBe('1');
      expect(seen).toHaveLength(1);
    },
  );

  it.each([
    ['a promise', (orders: Orders) => orders.failPromise()],
    ['an Observable', (orders: Orders) => firstValueFrom(orders.failObservable())],
    ['a generator', (orders: Orders) => all(orders.failGenerator())],
  ])('that fails delivers its own error to the caller: %s', async (_style, call) => {
    const unhandled = collectUnhandledRejections();
    const { instance, locks } = start();
    await using _lease = await locks.acquire('order');
    await expect(call(instance)).rejects.toBe(failure);
    expect(await unhandled.finish()).toEqual([]);
  });

  it('that gives no Observable for an Observable is an error of the stream', async () => {
    const unhandled = collectUnhandledRejections();
    const { instance, locks } = start();
    await using _lease = await locks.acquire('order');
    await expect(firstValueFrom(instance.oddObservable())).rejects.toThrow(TypeError);
    expect(await unhandled.finish()).toEqual([]);
  });
});
