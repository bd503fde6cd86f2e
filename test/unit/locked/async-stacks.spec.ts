import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Limited, Locked, LockService, withLocks, type Lease } from 'nest-redis-lock';
import { bindLocks, createTestingLocks, MemoryStore } from 'nest-redis-lock/testing';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { deferred } from '../../support/async.js';
import { Log } from '../../support/core/core-under-test.js';

const declined = async (): Promise<never> => {
  await setImmediate();
  throw new Error('card declined');
};

const rowsUntilDeclined = {
  async *[Symbol.asyncIterator](): AsyncGenerator<number> {
    yield 1;
    await declined();
  },
};

/** Members whose requests fail once `fails` is set, each some ticks later. */
class FailingStore extends MemoryStore {
  fails = false;

  constructor() {
    super();
    this.failing(this, ['inspect', 'forceUnlock', 'list', 'ping']);
    for (const kind of Object.values(this.kinds)) this.failing(kind, ['acquire', 'release', 'extendMany']);
    this.failing(this.semaphores, ['take', 'add']);
    this.failing(this.latches, ['countDown', 'count']);
  }

  private failing<T extends object>(target: T, names: readonly (string & keyof T)[]): void {
    for (const name of names) {
      const method = (target[name] as (...args: unknown[]) => unknown).bind(target);
      const request = async (...args: unknown[]): Promise<unknown> => {
        await setImmediate();
        if (this.fails) throw new StoreFailure('no route', 'not-executed');
        return method(...args);
      };
      Object.assign(target, { [name]: request });
    }
  }
}

class Shop {
  signal: AbortSignal | undefined;

  @Locked('k', { waitMs: 20 })
  async locked(): Promise<void> {
    await declined();
  }

  @Locked('key:<<key>>')
  async withKey(key: string): Promise<void> {
    await declined();
    void key;
  }

  @Limited('permits', { waitMs: 20, permits: 1 })
  async limited(): Promise<void> {
    await declined();
  }

  @Locked('k', { waitMs: 20, signal: new AbortController().signal })
  async withSignal(): Promise<void> {
    await declined();
  }

  @Locked('k', { waitMs: 20 })
  async *generated(): AsyncGenerator<number> {
    yield 1;
    await declined();
  }

  @Locked('k', { waitMs: 20 })
  iterated(): AsyncIterable<number> {
    return rowsUntilDeclined;
  }

  @Locked('k', { waitMs: 20 })
  promised(): Promise<void> {
    return declined();
  }
}

let locks: LockService;
let shop: Shop;
let held: Lease[] = [];

beforeEach(() => {
  locks = createTestingLocks('memory', { maxWaiters: 2 });
  shop = bindLocks(new Shop(), locks);
});

afterEach(async () => {
  for (const lease of held.splice(0)) await lease.release();
});

const takeAll = async (): Promise<void> => {
  held = [await locks.acquire('k'), await locks.permits('permits', { permits: 1 }).acquire()];
};

const read = async (rows: AsyncIterable<unknown>): Promise<void> => {
  for await (const row of rows) void row;
};

/** The stack of what the call rejects with. The caller's name has to be in it. */
const stackAt = async (call: () => Promise<unknown>): Promise<string> => {
  async function placeOrder(): Promise<void> {
    await call();
  }
  try {
    await placeOrder();
  } catch (error) {
    return `${(error as { code?: string }).code}\n${(error as Error).stack}`;
  }
  throw new Error('it did not reject');
};

type Call = readonly [name: string, call: () => Promise<unknown>];

const SECTIONS: readonly Call[] = [
  ['@Locked', () => shop.locked()],
  ['@Limited', () => shop.limited()],
  ['@Locked with a signal', () => shop.withSignal()],
  ['@Locked on an async generator', () => read(shop.generated())],
  ['@Locked on a method that returns an async iterable', () => read(shop.iterated())],
  ['@Locked on a method that returns a promise', () => shop.promised()],
  ['withLock', () => locks.withLock('k', { waitMs: 20 }, declined)],
  [
    'withLock with a signal',
    () => locks.withLock('k', { waitMs: 20, signal: new AbortController().signal }, declined),
  ],
  ['withPermit', () => locks.permits('permits', { permits: 1 }).withPermit({ waitMs: 20 }, declined)],
  ['withLocks', () => withLocks([{ service: locks, key: 'k' }], { waitMs: 20 }, declined)],
];

describe('the stack of an error names the caller', () => {
  it.each([...SECTIONS, ['tryWithLock', () => locks.tryWithLock('k', declined)] satisfies Call])(
    'of %s, when the work throws',
    async (_name, call) => {
      const stack = await stackAt(call);
      expect(stack).toContain('card declined');
      expect(stack).toContain('placeOrder');
    },
  );

  it.each([
    ...SECTIONS,
    ['@Locked on a method that returns an async iterable, awaited', async () => shop.iterated()],
    ['acquire', () => locks.acquire('k', { waitMs: 20 })],
    ['acquire of several keys', () => locks.acquire(['j', 'k'], { waitMs: 20 })],
    ['acquire without a wait', () => locks.acquire('k', { waitMs: 0 })],
    ['acquire of a permit', () => locks.permits('permits', { permits: 1 }).acquire({ waitMs: 20 })],
    ['semaphore.acquire', () => locks.semaphore('none').acquire(1, { waitMs: 20 })],
    ['latch.wait', () => closedLatch({ waitMs: 20 })],
  ] satisfies Call[])('of %s, when the wait times out', async (_name, call) => {
    await takeAll();
    const stack = await stackAt(call);
    expect(stack).toContain('LOCK_TAKEN');
    expect(stack).toContain('placeOrder');
  });

  it.each(
    [{ watchdogMs: 2 }, { leaseMs: 0 }, { holdAtLeastMs: 'x' }, { waitMs: -1 }, { labels: 'x' }].flatMap(
      (mistake): [string, () => Promise<unknown>][] => {
        const wrong = mistake as object;
        const [of] = Object.keys(mistake);
        return [
          [`${of} of withLock`, () => locks.withLock('k', wrong, declined)],
          [`${of} of tryWithLock`, () => locks.tryWithLock('k', wrong, declined)],
          [`${of} of acquire`, () => locks.acquire('k', wrong)],
          [`${of} of tryAcquire`, () => locks.tryAcquire('k', wrong)],
          [`${of} of permits`, async () => locks.permits('k', wrong)],
          [`${of} of withPermit`, () => locks.permits('k', { permits: 1 }).withPermit(wrong, declined)],
          [`${of} of a permit`, () => locks.permits('k', { permits: 1 }).acquire(wrong)],
          [`${of} of withLocks`, () => withLocks([{ service: locks, key: 'k' }], wrong, declined)],
          [`${of} of semaphore.acquire`, () => locks.semaphore('none').acquire(1, wrong)],
          [`${of} of latch.wait`, () => locks.countDownLatch('none').wait(wrong)],
          [`${of} of list`, async () => locks.list(wrong)],
          [`${of} of @Locked`, async () => Locked('k', wrong)(Shop.prototype, 'locked', { value: declined })],
        ];
      },
    ),
  )('when an option is wrong: %s', async (_name, call) => {
    const stack = await stackAt(call);
    expect(stack).toContain('LOCK_CONFIGURATION');
    expect(stack).toContain('placeOrder');
  });

  it.each([
    ['withLock', () => locks.withLock('', declined)],
    ['acquire of several keys', () => locks.acquire(['k', ''])],
    ['permits', async () => locks.permits('')],
    ['withLocks', () => withLocks([{ service: locks, key: '' }], declined)],
    ['inspect', () => locks.inspect('')],
    ['semaphore', async () => locks.semaphore('')],
    ['@Locked', () => shop.withKey('')],
  ] satisfies Call[])('when a key is wrong: %s', async (_name, call) => {
    const stack = await stackAt(call);
    expect(stack).toContain('LOCK_KEY_INVALID');
    expect(stack).toContain('placeOrder');
  });

  it.each([
    ['lease.extend', (lease) => lease.extend(0)],
    ['lease.extend of a lost lease', (lease) => locks.forceUnlock('k').then(() => lease.extend(1_000))],
    ['lease.run of a lost lease', (lease) => locks.forceUnlock('k').then(() => lease.run(declined))],
    ['lease.downgrade', (lease) => lease.downgrade()],
  ] satisfies [string, (lease: Lease) => Promise<unknown>][])('of %s', async (_name, call) => {
    const lease = await locks.acquire('k');
    const stack = await stackAt(() => call(lease));
    expect(stack).toContain('placeOrder');
  });

  it.each([
    ['withLock', (of) => of.withLock('k', declined)],
    ['acquire', (of) => of.acquire('k')],
    ['acquire of several keys', (of) => of.acquire(['j', 'k'])],
    ['tryAcquire', (of) => of.tryAcquire('k')],
    ['withPermit', (of) => of.permits('permits', { permits: 1 }).withPermit(declined)],
    ['withLocks', (of) => withLocks([{ service: of, key: 'k' }], declined)],
    ['inspect', (of) => of.inspect('k')],
    ['isLocked', (of) => of.isLocked('k')],
    ['forceUnlock', (of) => of.forceUnlock('k')],
    ['list', (of) => of.list()],
    ['ping', (of) => of.ping()],
    ['release', (_of, lease) => lease.release()],
    ['extend', (_of, lease) => lease.extend(1_000)],
    ['verify', (_of, lease) => lease.verify()],
    ['semaphore.acquire', (of) => of.semaphore('none').acquire(1, { waitMs: 20 })],
    ['semaphore.release', (of) => of.semaphore('none').release()],
    ['latch.wait', (of) => of.countDownLatch('none').wait({ waitMs: 20 })],
    ['latch.countDown', (of) => of.countDownLatch('none').countDown()],
  ] satisfies [string, (of: LockService, lease: Lease) => Promise<unknown>][])(
    'of %s, when the store fails',
    async (_name, call) => {
      const store = new FailingStore();
      const service = new LockService(new LockManager(store, resolveSettings({}), new Log()));
      const lease = await service.acquire('held');
      store.fails = true;
      const stack = await stackAt(() => call(service, lease));
      expect(stack).toContain('LOCK_STORE_FAILED');
      expect(stack).toContain('placeOrder');
    },
  );

  it("of withLock with onLost: 'throw'", async () => {
    const stack = await stackAt(() =>
      locks.withLock('k', { onLost: 'throw' }, async () => {
        await locks.forceUnlock('k');
      }),
    );
    expect(stack).toContain('LOCK_LOST');
    expect(stack).toContain('placeOrder');
  });

  it('when it is the second caller of its process that waits', async () => {
    await takeAll();
    const first = locks.withLock('k', { waitMs: 40 }, declined).catch(() => undefined);
    const stack = await stackAt(() => shop.locked());
    expect(stack).toContain('LOCK_TAKEN');
    expect(stack).toContain('placeOrder');
    await first;
  });

  it('when the local queue is full', async () => {
    await takeAll();
    const waiting = [1, 2].map(() => locks.withLock('k', { waitMs: 40 }, declined).catch(() => undefined));
    const stack = await stackAt(() => shop.locked());
    expect(stack).toContain('LOCK_QUEUE_FULL');
    expect(stack).toContain('placeOrder');
    await Promise.all(waiting);
  });

  it.each([
    ['withLock', (signal) => locks.withLock('k', { waitMs: 9_000, signal }, declined)],
    ['tryWithLock', (signal) => locks.tryWithLock('k', { waitMs: 9_000, signal }, declined)],
    ['acquire', (signal) => locks.acquire('k', { waitMs: 9_000, signal })],
    ['tryAcquire', (signal) => locks.tryAcquire('k', { waitMs: 9_000, signal })],
    ['semaphore.acquire', (signal) => locks.semaphore('none').acquire(1, { waitMs: 9_000, signal })],
    ['latch.wait', (signal) => closedLatch({ waitMs: 9_000, signal })],
  ] satisfies [string, (signal: AbortSignal) => Promise<unknown>][])(
    'of %s, when its signal aborts the wait',
    async (_name, call) => {
      await takeAll();
      const stack = await stackAt(() => call(AbortSignal.timeout(10)));
      expect(stack).toContain('LOCK_ABORTED');
      expect(stack).toContain('placeOrder');
    },
  );

  it('when the wait of a nested call times out', async () => {
    const stack = await stackAt(() =>
      locks.withLock('k', async (lease) => {
        const work = deferred<void>();
        const first = lease.run(() => locks.withLock('k', () => work.promise));
        await locks.withLock('k', { waitMs: 20 }, declined).finally(() => work.resolve());
        await first;
      }),
    );
    expect(stack).toContain('LOCK_TAKEN');
    expect(stack).toContain('placeOrder');
  });
});

const closedLatch = async (options: { waitMs: number; signal?: AbortSignal }): Promise<void> => {
  const latch = locks.countDownLatch('closed');
  await latch.trySetCount(1);
  await latch.wait(options);
};
