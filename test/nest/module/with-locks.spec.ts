import { inspect } from 'node:util';
import { beforeAll, afterAll, beforeEach, describe, expect, it } from 'vitest';
import {
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockService,
  LockStoreError,
  RedisLockModule,
  createLockService,
  currentLease,
  getLockServiceToken,
  withLocks,
  type LockOfService,
} from 'nest-redis-lock';
import { RedisServer } from '../../support/servers/redis-server.js';
import { deferred, until } from '../../support/async.js';
import { useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';
import { RedisStore } from 'nest-redis-lock/redis';
import { MemorySpace, MemoryStore } from 'nest-redis-lock/testing';

const storeAt = (redis: string): RedisStore => new RedisStore({ redis, commandTimeoutMs: 300 });

const world = useWorld();
const apps = useApps();
const WAIT_MS = 5_000;

let other: RedisServer;
beforeAll(async () => {
  other = await RedisServer.start();
});
afterAll(() => other.stop());

/** An app with two modules, each with a Redis of its own. */
const twoServices = async (more: object = {}): Promise<[LockService, LockService]> => {
  const app = await apps.context({
    module: class AppModule {},
    imports: [
      RedisLockModule.forRoot({ ...world.options(), ...more }),
      RedisLockModule.forRoot({ redis: other.url, waitMs: 0, name: 'billing', ...more }),
    ],
  });
  return [app.get(LockService), app.get<LockService>(getLockServiceToken('billing'))];
};

describe('locks of services without a name', () => {
  const [shop, zoo] = [new MemorySpace(), new MemorySpace()];
  it.each([
    ['two stores', [{ store: shop }, { store: zoo }]],
    [
      'one store with two prefixes',
      [
        { store: shop, keyPrefix: 'a:' },
        { store: shop, keyPrefix: 'b:' },
      ],
    ],
  ])('are acquired in one order by all processes, whatever their lists: %s', async (_what, settings) => {
    const processes = await Promise.all(
      [1, 2].map(() =>
        Promise.all(
          settings.map(({ store: shared, ...more }) =>
            createLockService({ store: new MemoryStore({ shared }), ...more }),
          ),
        ),
      ),
    );
    const lists = processes.map((services, i) => {
      const list = services.map((service) => ({ service, key: 'order' }));
      return i === 0 ? list : list.reverse();
    });
    const call = async (list: readonly LockOfService[]): Promise<void> => {
      for (let round = 0; round < 20; round += 1)
        await withLocks(list, { waitMs: 2_000 }, () => new Promise((done) => setImmediate(done)));
    };
    await expect(Promise.all(lists.map(call))).resolves.toHaveLength(2);
    for (const locks of processes.flat()) await locks.close();
  });

  it('are shown as redactKey shows their keys', async () => {
    const redactKey = (): string => 'a user';
    const locks = await createLockService({ store: new MemoryStore(), redactKey });
    await withLocks([{ service: locks, key: 'user:anna' }], (lease) => {
      const texts = [JSON.stringify(lease), inspect(lease, { depth: 9 })];
      for (const text of texts) {
        expect(text).toContain('a user');
        expect(text).not.toContain('anna');
      }
    });
    await locks.close();
  });
});

describe('locks of several services', () => {
  let stock: LockService;
  let billing: LockService;
  let both: readonly LockOfService[];
  beforeEach(async () => {
    [stock, billing] = await twoServices();
    both = [
      { service: billing, key: 'invoice' },
      { service: stock, key: 'sku' },
    ];
  });

  const nothingHeld = async (): Promise<void> => {
    for (const { service, key } of both) expect(await service.isLocked(key)).toBe(false);
    for (const service of [stock, billing]) {
      await until(() => Object.values(service.usage).every((size) => size === 0));
    }
  };

  it('are all held while the section runs, and all released after it, whether it succeeds or not', async () => {
    const held = (): Promise<boolean[]> => Promise.all(both.map(({ service, key }) => service.isLocked(key)));
    expect(await withLocks(both, held)).toEqual([true, true]);
    await nothingHeld();
    const own = new Error('no money');
    await expect(withLocks(both, () => Promise.reject(own))).rejects.toBe(own);
    await nothingHeld();
  });

  it('have a lease and a fencing token each, and one signal for all', async () => {
    await withLocks(both, async (lease) => {
      expect(lease.parts.map(({ key }) => key)).toEqual(['invoice', 'sku']);
      expect(lease.of(stock, 'sku').fencingToken).toBeGreaterThan(0);
      expect(lease.of(billing, 'invoice').owner).toBe((await billing.inspect('invoice'))!.holders[0]!.owner);
      expect(() => lease.of(stock, 'invoice')).toThrow(LockKeyError);
      expect([lease.lost, lease.signal.aborted, lease.remainingMs() > 0]).toEqual([false, false, true]);
    });
  });

  it('have a mode each: readers go in together, and a key in both modes is taken to write', async () => {
    const [again, billingAgain] = await twoServices();
    const modes = (sku: 'read' | 'write', invoice: 'read' | 'write'): LockOfService[] => [
      { service: billing, key: 'invoice', mode: invoice },
      { service: stock, key: 'sku', mode: sku },
    ];
    const kinds = () => [...stock.held(), ...billing.held()].map(({ kind }) => kind);
    await withLocks(modes('read', 'write'), async (lease) => {
      expect(kinds()).toEqual(['read', 'write']);
      expect(lease.of(billing, 'invoice').fencingToken).toBeGreaterThan(0);
      await (await again.acquire('sku', { mode: 'read' })).release();
      expect(await billingAgain.tryAcquire('invoice', { mode: 'read' })).toBeNull();
    });
    await withLocks([...modes('read', 'read'), ...modes('write', 'read')], () => {
      expect(kinds()).toEqual(['write', 'read']);
    });
    await withLocks([{ service: stock, key: 'sku' }], { mode: 'read' }, () =>
      expect(kinds()).toEqual(['read']),
    );
    await nothingHeld();
  });

  it('inside a lock on one of the keys wait for it, as any other caller', async () => {
    await stock.withLock('sku', async () => {
      const attempt = withLocks(both, () => 'ran');
      await expect(attempt).rejects.toMatchObject({ code: 'LOCK_TAKEN', key: 'sku', heldAround: true });
    });
    await nothingHeld();
  });

  it('are refused before any is taken where a mode cannot be, or a key is wanted plain and in a mode', async () => {
    const [part] = both as [LockOfService];
    const twice = withLocks([part, { ...part, mode: 'read' }], () => 'ran');
    await expect(twice).rejects.toBeInstanceOf(LockConfigurationError);
    const unknown = withLocks([part, { service: stock, key: 'sku', mode: 'append' as never }], () => 'ran');
    await expect(unknown).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    const fair = withLocks(
      [part, { service: stock, key: 'sku', mode: 'read' }],
      { mode: 'fair' },
      () => 'ran',
    );
    await expect(fair).rejects.toBeInstanceOf(LockConfigurationError);
    await nothingHeld();
  });

  it('let calls in that are proven inside of one of their leases, and no others', async () => {
    await withLocks(both, async (lease) => {
      const inside = lease.of(stock, 'sku');
      expect(await stock.withLock('sku', { inside }, () => 'in')).toBe('in');
      const unproven = billing.withLock('invoice', () => 'in');
      await expect(unproven).rejects.toMatchObject({ code: 'LOCK_TAKEN', heldAround: true });
      expect(currentLease().keys).toEqual(['sku']);
    });
  });

  it.each(['invoice', 'sku'])('are not held at all if %s is taken: the error names it', async (key) => {
    const { service } = both.find((one) => one.key === key)!;
    const [again, billingAgain] = await twoServices();
    const lease = await (service === stock ? again : billingAgain).acquire(key);
    const attempt = withLocks(both, () => 'ran');
    await expect(attempt).rejects.toBeInstanceOf(LockNotAcquiredError);
    await expect(attempt).rejects.toMatchObject({ key });
    await lease.release();
    await nothingHeld();
  });

  it('are not held at all if the store of one fails', async () => {
    const gone = await RedisServer.start();
    const app = await apps.context({
      module: class AppModule {},
      imports: [
        RedisLockModule.forRoot(world.options()),
        RedisLockModule.forRoot({ store: storeAt(gone.url), name: 'zoo' }),
      ],
    });
    const here = app.get(LockService);
    const there = app.get<LockService>(getLockServiceToken('zoo'));
    await gone.stop();
    const locks = [
      { service: there, key: 'b' },
      { service: here, key: 'a' },
    ];
    await expect(withLocks(locks, () => 'ran')).rejects.toBeInstanceOf(LockStoreError);
    expect(await here.isLocked('a')).toBe(false);
  });

  it('are released although the store of one fails at the release, and the result stands', async () => {
    const gone = await RedisServer.start();
    const app = await apps.context({
      module: class AppModule {},
      imports: [
        RedisLockModule.forRoot(world.options()),
        RedisLockModule.forRoot({ store: storeAt(gone.url), name: 'zoo', shutdownGraceMs: 0 }),
      ],
    });
    const here = app.get(LockService);
    const there = app.get<LockService>(getLockServiceToken('zoo'));
    const failed: string[] = [];
    there.on('store-down', () => failed.push('there'));
    here.on('store-down', () => failed.push('here'));
    for (const keys of [
      ['a', 'b'],
      ['d', 'c'],
    ] as const) {
      await gone.restart();
      await until(() => there.ping().then(() => true));
      const locks = [
        { service: here, key: keys[0] },
        { service: there, key: keys[1] },
      ];
      // Whichever is released first: the result of the work stands.
      const result = withLocks(locks, async () => {
        await gone.kill('SIGKILL');
        return 'done';
      });
      expect(await result).toBe('done');
      expect(await here.isLocked(keys[0])).toBe(false);
    }
    expect(failed).toEqual(['there', 'there']);
    await gone.stop();
  });

  it('have one owner if ten callers request them and do not wait', async () => {
    const [again, billingAgain] = await twoServices();
    const sides = [
      [stock, billing],
      [again, billingAgain],
    ] as const;
    const enough = deferred();
    let refused = 0;
    const attempts = Array.from({ length: 10 }, (_, i) => {
      const [one, two] = sides[i % 2]!;
      const locks = [
        { service: two, key: 'invoice' },
        { service: one, key: 'sku' },
      ];
      return withLocks(locks, { waitMs: 0 }, () => enough.promise).catch((error: unknown) => {
        expect(error).toBeInstanceOf(LockNotAcquiredError);
        if ((refused += 1) === 9) enough.resolve();
      });
    });
    await Promise.all(attempts);
    expect(refused).toBe(9);
    await nothingHeld();
  });

  it('cannot deadlock callers that list them in opposite orders', async () => {
    const processes = [[stock, billing], await twoServices(), await twoServices()] as const;
    const same = (locks: readonly LockService[]): readonly LockOfService[] =>
      locks.map((service) => ({ service, key: 'same' }));
    let inside = 0;
    await Promise.all(
      processes.flatMap(([one, two]) =>
        [same([one, two]), same([two, one])].map(async (locks) => {
          for (let round = 0; round < 20; round++) {
            await withLocks(locks, { waitMs: 4 * WAIT_MS }, async () => {
              expect((inside += 1)).toBe(1);
              await new Promise((resolve) => setImmediate(resolve));
              inside -= 1;
            });
          }
        }),
      ),
    );
  });

  it('say which one was lost, abort the signal, and throw that when it is asked for', async () => {
    const run = (onLost: 'throw' | 'event') =>
      withLocks(both, { onLost }, async (lease) => {
        await billing.forceUnlock('invoice');
        expect([lease.lost, lease.signal.aborted, lease.remainingMs()]).toEqual([true, true, 0]);
        expect(lease.loss).toBeInstanceOf(LockLostError);
        expect(lease.loss).toMatchObject({ key: 'invoice' });
        expect(lease.of(stock, 'sku').lost).toBe(false);
        return 'done';
      });
    expect(await run('event')).toBe('done');
    await expect(run('throw')).rejects.toMatchObject({ key: 'invoice' });
    await nothingHeld();
  });

  it('have a fixed lease that begins when all of them are held', async () => {
    const [, billingElsewhere] = await twoServices();
    const [first] = [...both].sort((a, b) => (a.key < b.key ? -1 : 1));
    const second = both.find((one) => one !== first)!;
    const [stockElsewhere] = await twoServices();
    const blocker = await (second.service === stock ? stockElsewhere : billingElsewhere).acquire(second.key);
    const result = withLocks(both, { leaseMs: 60_000, waitMs: WAIT_MS }, async (all) => {
      const left = await Promise.all(both.map(({ service, key }) => service.inspect(key)));
      return [all.remainingMs(), ...left.map((state) => state!.holders[0]!.remainingMs)];
    });
    await until(() => first!.service.isLocked(first!.key));
    // The lease meanwhile is that which the watchdog renews: 30 s.
    expect((await first!.service.inspect(first!.key))!.holders[0]!.remainingMs).toBeLessThanOrEqual(30_000);
    await blocker.release();
    for (const leftMs of await result) expect(leftMs).toBeGreaterThan(30_000);
  });

  it('are one where the same is listed twice', async () => {
    const twice = [...both, ...both];
    expect(await withLocks(twice, (lease) => lease.parts.length)).toBe(2);
  });

  it.each([
    ['no lock', []],
    ['a lock without a service', [{ key: 'a' }]],
    ['something else in place of a service', [{ service: {}, key: 'a' }]],
    ['nothing in place of a lock', [undefined]],
  ])('refuse %s by name', async (_what, locks) => {
    await expect(withLocks(locks as never, () => 'ran')).rejects.toBeInstanceOf(LockConfigurationError);
  });

  it('refuse a key that is none, options that are none, and a section that is none, before any lock is taken', async () => {
    const keys = [{ service: stock, key: ['a', 'b'] }];
    const list = withLocks(keys as never, () => 'ran');
    await expect(list).rejects.toBeInstanceOf(LockKeyError);
    await expect(list).rejects.toThrow(
      'withLocks: lock 1 has a list of keys. Give each key an entry of its own.',
    );
    for (const typo of [{ Mode: 'read' }, { leaseMs: 500 }]) {
      await expect(withLocks([{ ...both[0]!, ...typo }], () => 'ran')).rejects.toThrow(
        `lock 1 is { service, key, mode? }, and has no "${Object.keys(typo)[0]}"`,
      );
    }
    await expect(withLocks(both, {}, undefined as never)).rejects.toBeInstanceOf(LockConfigurationError);
    const generator = function* () {
      yield 1;
    };
    await expect(withLocks(both, generator as never)).rejects.toThrow(/generator/);
    await nothingHeld();
  });
});
