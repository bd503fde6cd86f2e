import 'reflect-metadata';
import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LockConfigurationError, Locked, currentLease, type LockService } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { isIdle, lockedInstance } from './fixture.js';

const UNREAD_MS = 30_000;
const LAST = 3;
const broken = new Error('broken half-way');

/** What one step of reading saw: whether it was a part of the section. */
const inSection: boolean[] = [];
const step = (): void => {
  inSection.push(heldHere());
};
const heldHere = (): boolean => {
  try {
    return currentLease('rows').remainingMs() > 0;
  } catch {
    return false;
  }
};

async function* generator(): AsyncGenerator<number> {
  for (let row = 1; row <= LAST; row++) {
    step();
    yield row;
  }
}

/** A driver's cursor: its state is private, and each iteration has an iterator of its own. */
class Cursor implements AsyncIterable<number> {
  #at = 0;
  #closed = false;

  async *[Symbol.asyncIterator](): AsyncGenerator<number> {
    for (let row = await this.next(); row !== null; row = await this.next()) yield row;
  }

  async next(): Promise<number | null> {
    if (this.#closed || this.#at === LAST) return null;
    step();
    return ++this.#at;
  }

  async close(): Promise<void> {
    await Promise.resolve();
    this.#closed = true;
  }

  get closed(): boolean {
    return this.#closed;
  }
}

/** Is its own iterator, with private state, and with nothing but what it needs for that. */
class OnlyNext implements AsyncIterableIterator<number> {
  #at = 0;

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<number>> {
    if (this.#at === LAST) return { done: true, value: undefined };
    step();
    return { done: false, value: ++this.#at };
  }
}

const inContext = AsyncLocalStorage.snapshot();

const webStream = (): ReadableStream<number> => {
  let at = 0;
  return new ReadableStream<number>(
    {
      pull(controller) {
        if (at === LAST) return controller.close();
        step();
        controller.enqueue(++at);
      },
    },
    { highWaterMark: 0 },
  );
};

class Rows {
  source: AsyncIterable<number> = generator();

  @Locked('rows')
  async rows(): Promise<AsyncIterable<number>> {
    return this.source;
  }
}

type Source = AsyncIterable<number> & object;

const start = <T extends Source>(source: T) => {
  inSection.length = 0;
  const { instance, locks } = lockedInstance(Rows);
  instance.source = source;
  return { locks, open: () => instance.rows() as Promise<T> };
};

const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

const idle = (locks: LockService) => until(() => isIdle(locks), { what: 'nothing is held' });
const isHeld = async (locks: LockService): Promise<void> => {
  await expect(inContext(() => locks.tryAcquire('rows'))).resolves.toBeNull();
};

const SHAPES: readonly [string, () => Source][] = [
  ['a generator', generator],
  ['a cursor', () => new Cursor()],
  ['an iterator with next() only', () => new OnlyNext()],
  ['a web stream', webStream as () => Source],
];

afterEach(() => {
  vi.useRealTimers();
});

describe.each(SHAPES)('%s that a locked method returns', (_shape, make) => {
  it('is the very object that the method returned', async () => {
    const source = make();
    const { open } = start(source);
    expect(await open()).toBe(source);
  });

  it('is locked in every step until it has been read to its end', async () => {
    const source = make();
    const { locks, open } = start(source);
    const seen: number[] = [];
    for await (const row of await open()) {
      if (seen.length < LAST - 1) await isHeld(locks);
      seen.push(row);
    }
    expect(seen).toEqual([1, 2, 3]);
    expect(inSection).toEqual([true, true, true]);
    await idle(locks);
  });

  it('gives its lock back at an early break, and when its reader throws', async () => {
    for (const leave of ['break', 'throw']) {
      const { locks, open } = start(make());
      const reading = async (): Promise<void> => {
        for await (const row of await open()) {
          expect(row).toBe(1);
          await isHeld(locks);
          if (leave === 'throw') throw broken;
          break;
        }
      };
      await (leave === 'throw' ? expect(reading()).rejects.toBe(broken) : reading());
      await idle(locks);
    }
  });

  it('gives its lock back at once when its iterator is returned before its first step', async () => {
    const { locks, open } = start(make());
    const rows = (await open())[Symbol.asyncIterator]();
    await isHeld(locks);
    await rows.return!();
    await idle(locks);
    expect(inSection).toEqual([]);
  });

  it('releases its lock after 30 s without a reader, and cannot be read later without it', async () => {
    vi.useFakeTimers();
    const { locks, open } = start(make());
    const rows = await open();
    await vi.advanceTimersByTimeAsync(UNREAD_MS - 1);
    await isHeld(locks);
    await vi.advanceTimersByTimeAsync(2);
    expect(isIdle(locks)).toBe(true);
    vi.useRealTimers();
    await expect(all(rows)).rejects.toThrow(/Rows\.rows: .*not within 30000 ms/);
    expect(inSection).toEqual([]);
  });

  it('is not disturbed once its reader has begun, however slowly it reads', async () => {
    vi.useFakeTimers();
    const { locks, open } = start(make());
    const rows = (await open())[Symbol.asyncIterator]();
    await expect(rows.next()).resolves.toEqual({ done: false, value: 1 });
    await vi.advanceTimersByTimeAsync(3 * UNREAD_MS);
    await isHeld(locks);
    await expect(rows.next()).resolves.toEqual({ done: false, value: 2 });
  });

  it.each<[string, (source: Source) => Source]>([
    ['frozen', (source) => Object.freeze(source)],
    ['sealed', (source) => Object.seal(source)],
    ['a fixed method', (source) => Object.defineProperty(source, 'close', { value: () => undefined })],
  ])('is refused when its methods cannot be replaced: %s', async (_how, harden) => {
    const { locks, open } = start(harden(make()));
    const refused = open();
    await expect(refused).rejects.toThrow(LockConfigurationError);
    await expect(refused).rejects.toThrow(/Rows\.rows: .*frozen.*yield\*/);
    expect(isIdle(locks)).toBe(true);
  });
});

describe('a cursor that a locked method returns', () => {
  it('keeps its own methods, and gives its lock back when it is closed', async () => {
    const { locks, open } = start(new Cursor());
    const cursor = await open();
    await isHeld(locks);
    await cursor.close();
    expect(cursor.closed).toBe(true);
    await idle(locks);
  });

  it('may be read by its own next() until that gives null', async () => {
    const { locks, open } = start(new Cursor());
    const cursor = await open();
    const seen: (number | null)[] = [];
    do {
      await isHeld(locks);
      seen.push(await cursor.next());
    } while (seen.at(-1) !== null);
    expect(seen).toEqual([1, 2, 3, null]);
    expect(inSection).toEqual([true, true, true]);
    await idle(locks);
    await expect(cursor.next()).resolves.toBeNull();
  });

  it('is not taken for ended by a row that is done', async () => {
    const rows = [{ title: 'wash up', done: true }, { title: 'sleep', done: true }, null];
    const tasks = {
      next: () => Promise.resolve(rows.shift()),
      async *[Symbol.asyncIterator](): AsyncGenerator<never> {},
    };
    const { locks, open } = start(tasks as never as Source);
    const cursor = (await open()) as never as typeof tasks;
    await cursor.next();
    await isHeld(locks);
    await cursor.next();
    await isHeld(locks);
    await cursor.next();
    await idle(locks);
  });

  it('ends for its reader, too, when other code closes it in the middle', async () => {
    const { locks, open } = start(new Cursor());
    const cursor = await open();
    const seen: number[] = [];
    for await (const row of cursor) {
      seen.push(row);
      await cursor.close();
      await idle(locks);
    }
    expect(seen).toEqual([1]);
  });

  it('is not read a second time without its lock', async () => {
    const twice: AsyncIterable<number> = { [Symbol.asyncIterator]: generator };
    const { locks, open } = start(twice);
    const rows = await open();
    await expect(all(rows)).resolves.toEqual([1, 2, 3]);
    await idle(locks);
    await expect(all(rows)).rejects.toThrow(/read again after its end/);
    await expect(all(await open()), 'a call of the method locks it anew').resolves.toEqual([1, 2, 3]);
    expect(inSection).toEqual(Array(6).fill(true));
    await idle(locks);
  });

  it('holds its lock until the last of several iterators has ended', async () => {
    const { locks, open } = start({ [Symbol.asyncIterator]: generator });
    const rows = await open();
    const [one, two] = [rows[Symbol.asyncIterator](), rows[Symbol.asyncIterator]()];
    await Promise.all([one.next(), two.next()]);
    await one.return(undefined);
    await isHeld(locks);
    await two.return(undefined);
    await idle(locks);
  });

  it('delivers its own error, and gives its lock back', async () => {
    const { locks, open } = start({
      async *[Symbol.asyncIterator](): AsyncGenerator<number> {
        yield 1;
        throw broken;
      },
    });
    await expect(all(await open())).rejects.toBe(broken);
    await idle(locks);
  });
});

describe('a web stream that a locked method returns', () => {
  const readers: readonly [string, (stream: ReadableStream<number>) => Promise<unknown>][] = [
    ['values()', (stream) => all(stream.values())],
    ['pipeTo', (stream) => stream.pipeTo(new WritableStream())],
    ['pipeThrough', (stream) => all(stream.pipeThrough(new TransformStream()))],
    ['tee', (stream) => Promise.all(stream.tee().map((half) => all(half)))],
    [
      'getReader',
      async (stream) => {
        const reader = stream.getReader();
        while (!(await reader.read()).done);
      },
    ],
  ];
  it.each(readers)('is locked until it has been read with %s', async (_name, read) => {
    const { locks, open } = start(webStream() as ReadableStream<number> & Source);
    const stream = await open();
    await isHeld(locks);
    await read(stream);
    expect(inSection).toEqual([true, true, true]);
    await idle(locks);
  });

  it('is locked while a reader has let go of it and the next has not come', async () => {
    const { locks, open } = start(webStream() as ReadableStream<number> & Source);
    const stream = await open();
    const reader = stream.getReader();
    await reader.read();
    reader.releaseLock();
    await isHeld(locks);
    await expect(all(stream)).resolves.toEqual([2, 3]);
    await idle(locks);
  });

  it.each(['stream', 'reader'])('gives its lock back when it is cancelled by its %s', async (by) => {
    const { locks, open } = start(webStream() as ReadableStream<number> & Source);
    const stream = await open();
    await (by === 'reader' ? stream.getReader() : stream).cancel();
    await idle(locks);
  });

  it('gives its lock back when it breaks', async () => {
    const failing = new ReadableStream<number>({ pull: (controller) => controller.error(broken) });
    const { locks, open } = start(failing as ReadableStream<number> & Source);
    await expect(all(await open())).rejects.toBe(broken);
    await idle(locks);
  });

  it('can be the body of a Response', async () => {
    const text = new Blob(['abc']).stream();
    const { locks, open } = start(text as never as Source);
    const body = (await open()) as never as typeof text;
    await isHeld(locks);
    await expect(new Response(body as never).text()).resolves.toBe('abc');
    await idle(locks);
  });

  it('cancels its source when it is never read', async () => {
    vi.useFakeTimers();
    const cancel = vi.fn();
    const { open } = start(new ReadableStream<number>({ cancel }) as ReadableStream<number> & Source);
    const stream = await open();
    await vi.advanceTimersByTimeAsync(UNREAD_MS + 1);
    expect(cancel).toHaveBeenCalledOnce();
    expect(() => stream.getReader()).toThrow(LockConfigurationError);
  });
});

it('gives its lock back when it cannot be iterated after all', async () => {
  for (const iterator of [
    () => {
      throw broken;
    },
    () => null,
  ]) {
    const { locks, open } = start({ [Symbol.asyncIterator]: iterator } as unknown as Source);
    const rows = await open();
    expect(() => rows[Symbol.asyncIterator]()).toThrow();
    await idle(locks);
  }
});
