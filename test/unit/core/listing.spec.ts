import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LockConfigurationError, LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { ListedLock, ListOptions } from '../../../lib/core/service/listing.js';
import type { ListReply, ListRequest } from '../../../lib/core/seam/listing.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { openLocksOn, type OpenLocksOn } from '../../support/stores/open-locks-on.js';

/** Records the requests for pages. */
class RecordingStore extends MemoryStore {
  readonly requests: ListRequest[] = [];
  reply: (() => Promise<ListReply>) | undefined;

  override list(request: ListRequest): Promise<ListReply> {
    this.requests.push(request);
    return this.reply?.() ?? super.list(request);
  }
}

describe('locks.list', () => {
  let store: RecordingStore;
  let opened: OpenLocksOn;

  beforeEach(() => {
    store = new RecordingStore();
    opened = openLocksOn(store, { keyPrefix: 'shop:' });
  });
  afterEach(() => opened[Symbol.asyncDispose]());

  const listAll = async (options: ListOptions = {}): Promise<readonly ListedLock[]> => {
    const { locks, cursor } = await opened.locks.list(options);
    return cursor === undefined ? locks : [...locks, ...(await listAll({ ...options, cursor }))];
  };

  it('has the locks of all services with the same keyPrefix, and no other', async () => {
    await using there = openLocksOn(new MemoryStore({ shared: store.space }), { keyPrefix: 'shop:' });
    await using elsewhere = openLocksOn(new MemoryStore({ shared: store.space }), { keyPrefix: 'shopping:' });
    const lease = await there.locks.acquire('order:1');
    await elsewhere.locks.acquire('order:2');
    await there.locks.permits('crm', { permits: 2 }).acquire();
    const waiting = opened.locks.acquire('order:1');
    await expect.poll(async () => (await opened.locks.inspect('order:1'))?.waiting.length).toBe(1);
    const [permit, order] = await listAll();
    expect(permit).toMatchObject({ key: 'crm', kind: 'permit', holders: [{ count: 1 }], waiting: [] });
    expect(order).toMatchObject({ key: 'order:1', kind: 'exclusive', holders: [{ owner: lease.owner }] });
    expect(order!.waiting).toHaveLength(1);
    expect(order).not.toHaveProperty('nodes');
    expect((await listAll({ prefix: 'order:' })).map(({ key }) => key)).toEqual(['order:1']);
    expect(await listAll({ prefix: 'shop:' })).toEqual([]);
    await lease.release();
    await (await waiting).release();
  });

  it('goes on where the page before ended', async () => {
    const keys = Array.from({ length: 250 }, (_, i) => `k${String(i).padStart(3, '0')}`);
    await Promise.all(keys.map((key) => opened.locks.acquire(key)));
    const first = await opened.locks.list({ prefix: undefined, cursor: undefined });
    expect(first.locks).toHaveLength(100);
    expect(first.cursor).toMatch(/^[\w-]+$/);
    expect((await listAll()).map(({ key }) => key)).toEqual(keys);
    expect(store.requests.map(({ prefix }) => prefix)).toEqual(['shop:', 'shop:', 'shop:', 'shop:']);
    await expect(opened.locks.list({ prefix: 'other', cursor: first.cursor })).rejects.toBeInstanceOf(
      LockConfigurationError,
    );
  });

  const encoded = (text: string | Buffer): string => Buffer.from(text).toString('base64url');

  it.each<[unknown, string]>([
    [null, 'options'],
    ['order:', 'options'],
    [[], 'options'],
    [{ prefix: 7 }, 'prefix'],
    [{ prefix: null }, 'prefix'],
    [{ prefix: ['a'] }, 'prefix'],
    [{ prefix: '\ud800' }, 'prefix'],
    [{ prefx: 'a' }, 'Did you mean prefix?'],
    [{ limit: 5 }, 'limit'],
    [{ waitMs: 5 }, 'waitMs'],
    [{ cursor: 0 }, 'cursor'],
    [{ cursor: null }, 'cursor'],
    [{ cursor: '' }, 'cursor'],
    [{ cursor: 'shop:' }, 'cursor'],
    [{ cursor: '*' }, 'cursor'],
    [{ cursor: `${encoded('shop:a')}=` }, 'cursor'],
    [{ cursor: ` ${encoded('shop:a')}` }, 'cursor'],
    [{ cursor: encoded(Buffer.from([0xff, 0xfe])) }, 'cursor'],
    [{ cursor: { toString: () => 'x' } }, 'cursor'],
  ])('rejects %j by its name, and sends nothing', async (options, named) => {
    const failure: unknown = await opened.locks.list(options as ListOptions).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockConfigurationError);
    expect((failure as Error).message).toContain(named);
    expect(store.requests).toEqual([]);
  });

  it('rejects options that cannot be read', async () => {
    const options = {
      get prefix(): string {
        throw new Error('no such thing');
      },
    };
    const failure: unknown = await opened.locks.list(options).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockConfigurationError);
    expect(String(failure)).toContain('cannot be read: no such thing');
  });

  it('rejects a cursor that has the right form and is none of the store', async () => {
    for (const text of ['a', 'lock:a', '0@', '{"a":1}'])
      await expect(opened.locks.list({ cursor: encoded(text) })).rejects.toThrow('cursor must be the cursor');
    expect(opened.log).toEqual([]);
  });

  it('is refused by name on a store that cannot list', async () => {
    await using slate = openLocksOn(Object.assign(new MemoryStore(), { name: 'Slate', list: undefined }));
    await expect(slate.locks.list()).rejects.toThrow('Slate cannot list its locks');
    await expect(slate.locks.list()).rejects.toBeInstanceOf(LockConfigurationError);
  });

  it('rejects with the failure of the store', async () => {
    store.reply = () => Promise.reject(new StoreFailure('no table', 'not-executed'));
    await expect(opened.locks.list()).rejects.toBeInstanceOf(LockStoreError);
    await expect(opened.locks.list()).rejects.toThrow(/listing its locks.*no table/);
  });

  it('may have an empty page before the end', async () => {
    store.reply = () => Promise.resolve({ keys: [], cursor: '✓ 7' });
    const { locks, cursor } = await opened.locks.list();
    expect([locks, Buffer.from(cursor!, 'base64url').toString()]).toEqual([[], '✓ 7']);
    await opened.locks.list({ cursor });
    expect(store.requests.at(-1)).toEqual({ prefix: 'shop:', cursor: '✓ 7' });
  });
});
