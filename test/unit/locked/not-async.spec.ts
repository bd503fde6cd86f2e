import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, Locked, type LockService } from 'nest-redis-lock';
import { collectUnhandledRejections, until } from '../../support/async.js';
import { isIdle, lockedInstance } from './fixture.js';

/** What a driver gives. */
class Cursor implements AsyncIterable<number> {
  async *[Symbol.asyncIterator](): AsyncGenerator<number> {
    yield* rows();
  }
}

async function* rows(): AsyncGenerator<number, string> {
  yield 1;
  yield 2;
  return 'end';
}

class Rows {
  calls = 0;

  @Locked('rows')
  generator(): AsyncGenerator<number, string> {
    this.calls++;
    return rows();
  }

  @Locked('rows')
  iterable(): AsyncIterable<number> {
    this.calls++;
    return new Cursor();
  }

  @Locked('rows')
  undeclared() {
    this.calls++;
    return new Cursor() as AsyncIterable<number>;
  }

  /** As SWC below ES2018 declares an async generator. */
  @Locked('rows')
  @Reflect.metadata('design:returntype', Promise)
  lowered() {
    this.calls++;
    return rows();
  }

  @Locked('rows', { onBusy: 'skip' })
  skipped(): AsyncIterable<number> {
    this.calls++;
    return rows();
  }

  @Locked('rows', { onBusy: () => [7, 8].values() })
  oddFallback(): AsyncIterable<number> {
    return rows();
  }

  @Locked('rows', { onBusy: () => new Cursor() })
  fallback(): AsyncIterable<number> {
    return { async *[Symbol.asyncIterator](): AsyncGenerator<number> {} };
  }

  @Locked('rows')
  plain() {
    return 7 as never as AsyncIterable<number>;
  }

  @Locked('rows')
  promise(): Promise<number> {
    return Promise.resolve(7);
  }
}

const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

const idle = (locks: LockService) => until(() => isIdle(locks), { what: 'nothing is held' });
const METHODS = ['generator', 'iterable', 'undeclared', 'lowered'] as const;

describe.each(METHODS)('a method that is not async and returns an async iterable: %s', (name) => {
  it('can be iterated as it stands, and is locked until the end', async () => {
    const { instance, locks } = lockedInstance(Rows);
    const seen: number[] = [];
    for await (const row of instance[name]()) {
      expect(await locks.isLocked('rows')).toBe(true);
      seen.push(row);
    }
    expect(seen).toEqual([1, 2]);
    await idle(locks);
  });

  it('can be awaited first', async () => {
    const { instance, locks } = lockedInstance(Rows);
    const read = await (instance[name]() as unknown as Promise<AsyncIterable<number>>);
    expect(await locks.isLocked('rows')).toBe(true);
    await expect(all(read)).resolves.toEqual([1, 2]);
    await idle(locks);
  });

  it('gives its lock back at an early break', async () => {
    const { instance, locks } = lockedInstance(Rows);
    for await (const _row of instance[name]()) break;
    await idle(locks);
  });

  it('delivers a taken lock to the code that iterates, and nowhere else', async () => {
    const unhandled = collectUnhandledRejections();
    const { instance, locks } = lockedInstance(Rows);
    const lease = await locks.acquire('rows');
    await expect(all(instance[name]())).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    const iterator = instance[name]()[Symbol.asyncIterator]();
    await until(() => locks.usage.leases === 1);
    await expect(iterator.next()).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    instance[name]()[Symbol.asyncIterator]();
    expect(await unhandled.finish()).toEqual([]);
    expect(instance.calls).toBe(0);
    await lease.release();
  });
});

describe('a method that is not async', () => {
  it('may be read later when it declares an async iterable: a taken lock is an error of its reader', async () => {
    const unhandled = collectUnhandledRejections();
    const { instance, locks } = lockedInstance(Rows);
    await using _lease = await locks.acquire('rows');
    const later = instance.iterable();
    expect(await unhandled.finish()).toEqual([]);
    await expect(all(later)).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('has next(), return() and throw() where it declares a generator', async () => {
    const { instance, locks } = lockedInstance(Rows);
    const read = instance.generator();
    await expect(read.next()).resolves.toEqual({ done: false, value: 1 });
    await expect(read.return('early')).resolves.toEqual({ done: true, value: 'early' });
    await idle(locks);
    const thrown = new Error('thrown in');
    await expect(instance.generator().throw(thrown)).rejects.toBe(thrown);
    await idle(locks);
    await expect(instance.generator().return('never')).resolves.toEqual({ done: true, value: 'never' });
    await idle(locks);
  });

  it('gives nothing to iterate when it is skipped', async () => {
    const { instance, locks } = lockedInstance(Rows);
    await using _lease = await locks.acquire('rows');
    await expect(all(instance.skipped())).resolves.toEqual([]);
    expect(instance.calls).toBe(0);
  });

  it('iterates what its fallback gives, which has to be iterable', async () => {
    const { instance, locks } = lockedInstance(Rows);
    await using _lease = await locks.acquire('rows');
    await expect(all(instance.fallback())).resolves.toEqual([1, 2]);
    await expect(all(instance.oddFallback())).rejects.toThrow(LockConfigurationError);
  });

  it('says so when what it returned cannot be iterated', async () => {
    const { instance, locks } = lockedInstance(Rows);
    const outcome = all(instance.plain());
    await expect(outcome).rejects.toThrow(LockConfigurationError);
    await expect(outcome).rejects.toThrow(/Rows\.plain: .*cannot be iterated.*a number\. Await it/);
    expect(isIdle(locks)).toBe(true);
  });

  it('does not swallow the rejection when it declares a promise', async () => {
    const unhandled = collectUnhandledRejections();
    const { instance, locks } = lockedInstance(Rows);
    await using _lease = await locks.acquire('rows');
    void instance.promise();
    expect(await unhandled.finish()).toMatchObject([{ code: 'LOCK_TAKEN' }]);
  });
});

/** As a driver's query: it runs when it is awaited or iterated, and not before. */
class Query<T> implements PromiseLike<T>, AsyncIterable<number> {
  constructor(
    private readonly runs: string[],
    private readonly all: T,
  ) {}

  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.runs.push('awaited');
    return Promise.resolve(this.all).then(onFulfilled, onRejected);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<number> {
    this.runs.push('iterated');
    yield* [1, 2];
  }
}

type Lazy<T> = Promise<T> & AsyncIterable<number>;

class Queries {
  readonly runs: string[] = [];

  @Locked('rows')
  rows(): Lazy<number[]> {
    return new Query(this.runs, [1, 2]) as never;
  }

  @Locked('rows')
  result(): Lazy<{ rowCount: number }> {
    return new Query(this.runs, { rowCount: 2 }) as never;
  }
}

describe('a method that returns a query, which can be awaited or iterated', () => {
  it('is iterated under its lock, and the query is not awaited', async () => {
    const { instance, locks } = lockedInstance(Queries);
    const seen: number[] = [];
    for await (const row of instance.rows()) {
      expect(await locks.isLocked('rows')).toBe(true);
      seen.push(row);
    }
    expect([seen, instance.runs]).toEqual([[1, 2], ['iterated']]);
    await idle(locks);
  });

  it('releases its lock when the reader breaks', async () => {
    const { instance, locks } = lockedInstance(Queries);
    for await (const _row of instance.rows()) break;
    await idle(locks);
  });

  it('is awaited under its lock, and the query is not iterated', async () => {
    const { instance, locks } = lockedInstance(Queries);
    await expect(instance.rows()).resolves.toEqual([1, 2]);
    expect(instance.runs).toEqual(['awaited']);
    await idle(locks);
  });

  it('gives its rows to a reader that comes after the lock was released', async () => {
    const { instance, locks } = lockedInstance(Queries);
    const later = instance.rows();
    await until(() => instance.runs.length === 1);
    await idle(locks);
    await expect(all(later)).resolves.toEqual([1, 2]);
    expect(instance.runs).toEqual(['awaited']);
  });

  it('says what to write when the reader comes too late, and the query gave no rows', async () => {
    const { instance, locks } = lockedInstance(Queries);
    const later = instance.result();
    await until(() => instance.runs.length === 1);
    await idle(locks);
    await expect(all(later)).rejects.toThrow(
      'Queries.result: what it returned can be awaited or iterated. Nothing iterated it when the lock was acquired, so ' +
        'it was awaited, and gave an object without Symbol.asyncIterator. Iterate the call itself: for await (const row of ' +
        'service.result(…)).',
    );
  });
});
