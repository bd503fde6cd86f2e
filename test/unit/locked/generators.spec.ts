import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, Locked, currentLease, type LockService } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { isIdle, lockedInstance } from './fixture.js';

const broken = new Error('broken half-way');

class Pages {
  readonly log: string[] = [];

  @Locked('pages:<<book>>')
  async *read(book: string): AsyncGenerator<number, string, string | undefined> {
    this.log.push(`${book} begins`);
    try {
      for (let page = 1; page <= 3; page++) {
        const said = yield page;
        if (said) this.log.push(`${book} heard ${said}`);
      }
      return 'end';
    } finally {
      this.log.push(`${book} ends`);
    }
  }

  @Locked('pages')
  async *fails(): AsyncGenerator<number> {
    yield 1;
    throw broken;
  }

  @Locked('pages')
  async *section(): AsyncGenerator<readonly string[]> {
    yield currentLease().keys;
    await Promise.resolve();
    yield currentLease().keys;
  }

  @Locked('pages')
  async *nested(locks: LockService): AsyncGenerator<string> {
    yield await locks.withLock('pages', { inside: currentLease() }, () => 'in');
  }

  /** Not a generator method: the promise of a generator. */
  @Locked('pages:<<book>>')
  async open(book: string): Promise<AsyncGenerator<number, string, string | undefined>> {
    return this.plain(book);
  }

  async *plain(book: string): AsyncGenerator<number, string, string | undefined> {
    this.log.push(`${book} begins`);
    try {
      yield 1;
      yield 2;
      return 'end';
    } finally {
      this.log.push(`${book} ends`);
    }
  }

  @Locked('pages')
  async *skips(): AsyncGenerator<number> {
    yield* skipping();
  }

  @Locked('pages')
  async skipsLater(): Promise<AsyncGenerator<number>> {
    return skipping();
  }
}

/** Goes on with the next page when its reader throws one back. */
async function* skipping(): AsyncGenerator<number> {
  for (let page = 1; page <= 3; page++) {
    try {
      yield page;
    } catch (error) {
      if (error !== broken) throw error;
    }
  }
}

const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

const idle = (locks: LockService) => until(() => isIdle(locks), { what: 'nothing is held' });

describe('an async generator method', () => {
  it('takes no lock before the first item is asked for', () => {
    const { instance, locks } = lockedInstance(Pages);
    instance.read('a');
    expect(isIdle(locks)).toBe(true);
    expect(instance.log).toEqual([]);
  });

  it('holds the lock from the first item to the end', async () => {
    const { instance, locks } = lockedInstance(Pages);
    const locked: boolean[] = [];
    for await (const _page of instance.read('a')) locked.push(await locks.isLocked('pages:a'));
    expect(locked).toEqual([true, true, true]);
    expect(isIdle(locks)).toBe(true);
  });

  it('lets two readers in one after the other', async () => {
    const { instance } = lockedInstance(Pages, 10_000);
    await Promise.all([all(instance.read('a')), all(instance.read('a'))]);
    expect(instance.log).toEqual(['a begins', 'a ends', 'a begins', 'a ends']);
  });

  it('ends the body and gives the lock back at an early break', async () => {
    const { instance, locks } = lockedInstance(Pages);
    for await (const page of instance.read('a')) if (page === 2) break;
    expect(instance.log).toEqual(['a begins', 'a ends']);
    expect(isIdle(locks)).toBe(true);
  });

  it('passes on what is sent in and what it returns', async () => {
    const { instance } = lockedInstance(Pages);
    const pages = instance.read('a');
    await pages.next();
    await expect(pages.next('louder')).resolves.toEqual({ done: false, value: 2 });
    await pages.next();
    await expect(pages.next()).resolves.toEqual({ done: true, value: 'end' });
    expect(instance.log).toContain('a heard louder');
  });

  it('delivers its own error, and gives the lock back', async () => {
    const { instance, locks } = lockedInstance(Pages);
    await expect(all(instance.fails())).rejects.toBe(broken);
    expect(isIdle(locks)).toBe(true);
  });

  it('gives the lock back when its reader throws into it', async () => {
    const { instance, locks } = lockedInstance(Pages);
    const pages = instance.read('a');
    await pages.next();
    await expect(pages.throw(broken)).rejects.toBe(broken);
    expect(instance.log).toEqual(['a begins', 'a ends']);
    expect(isIdle(locks)).toBe(true);
  });

  it('delivers to its body what its reader throws into it, which may go on', async () => {
    const { instance, locks } = lockedInstance(Pages);
    for (const open of [() => instance.skips(), () => instance.skipsLater()]) {
      const pages = await open();
      await pages.next();
      await expect(pages.throw(broken)).resolves.toEqual({ done: false, value: 2 });
      expect(await locks.isLocked('pages')).toBe(true);
      const other = new Error('other');
      await expect(pages.throw(other)).rejects.toBe(other);
      await idle(locks);
    }
  });

  it('takes no lock when it is returned before the first item', async () => {
    const { instance, locks } = lockedInstance(Pages);
    const pages = instance.read('a');
    await expect(pages.return('never')).resolves.toEqual({ done: true, value: 'never' });
    expect(isIdle(locks)).toBe(true);
    expect(instance.log).toEqual([]);
  });

  it('rejects the first item when the lock is taken, and does not run', async () => {
    const { instance, locks } = lockedInstance(Pages);
    await using _lease = await locks.acquire('pages:a');
    await expect(instance.read('a').next()).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    expect(instance.log).toEqual([]);
  });

  it('runs inside its section between all items: currentLease() works, and takes nested calls', async () => {
    const { instance, locks } = lockedInstance(Pages);
    await expect(all(instance.section())).resolves.toEqual([['pages'], ['pages']]);
    await expect(all(instance.nested(locks))).resolves.toEqual(['in']);
  });

  it('never runs without a lock service', async () => {
    const pages = new Pages();
    await expect(pages.read('a').next()).rejects.toThrow(LockConfigurationError);
    expect(pages.log).toEqual([]);
  });
});

describe('a method that returns a promise of a generator', () => {
  it('gives the lock back at once when that is returned before its first item', async () => {
    const { instance, locks } = lockedInstance(Pages);
    const pages = await instance.open('a');
    await expect(pages.return('never')).resolves.toEqual({ done: true, value: 'never' });
    await idle(locks);
    expect(instance.log).toEqual([]);
    await expect(pages.next()).resolves.toEqual({ done: true, value: undefined });
  });

  it('passes on what is sent in and what it returns', async () => {
    const { instance, locks } = lockedInstance(Pages);
    const pages = await instance.open('a');
    await pages.next();
    await pages.next('louder');
    await expect(pages.next()).resolves.toEqual({ done: true, value: 'end' });
    await idle(locks);
  });

  it('holds the lock until that has been read to its end', async () => {
    const { instance, locks } = lockedInstance(Pages);
    const pages = await instance.open('a');
    expect(await locks.isLocked('pages:a')).toBe(true);
    await expect(all(pages)).resolves.toEqual([1, 2]);
    await idle(locks);
  });

  it('gives the lock back at an early break', async () => {
    const { instance, locks } = lockedInstance(Pages);
    for await (const _page of await instance.open('a')) break;
    await idle(locks);
    expect(instance.log).toEqual(['a begins', 'a ends']);
  });
});
