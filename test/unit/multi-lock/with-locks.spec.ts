import { beforeEach, describe, expect, it } from 'vitest';
import { currentLease, withLocks, type LockOfService } from 'nest-redis-lock';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { Log, watched } from '../../support/core/core-under-test.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const LEASE_MS = 500;
/** More than three fixed leases. */
const BLOCKED_MS = 1_600;
const UNUSED = { leases: 0, keys: 0, holds: 0, undoing: 0 };

let runtime: VirtualRuntime;
let spaces: readonly MemorySpace[];
let stock: LockService;
let billing: LockService;
let archive: LockService;
/** A process that uses the same store as `archive`. */
let elsewhere: LockService;

beforeEach(() => {
  runtime = new VirtualRuntime();
  spaces = Array.from({ length: 3 }, () => new MemorySpace({ now: () => runtime.now() }));
  const serviceAt = (space: MemorySpace, name: string, settings: object = {}): LockService =>
    new LockService(
      new LockManager(new MemoryStore({ shared: space }), resolveSettings(settings), new Log(), runtime),
      undefined,
      name,
    );
  [stock, billing, archive] = spaces.map((space, at) => serviceAt(space, `service ${at}`)) as [
    LockService,
    LockService,
    LockService,
  ];
  elsewhere = serviceAt(spaces[2]!, 'service 2');
});

/** A key of each service. The last in the order is that of `archive`. */
const ofAll = (modes: readonly LockOfService['mode'][] = []): LockOfService[] =>
  [stock, billing, archive].map((service, at) => ({ service, key: `key ${at}`, mode: modes[at] }));

const nothingLeft = async (): Promise<void> => {
  await settled();
  for (const { service, key } of ofAll()) {
    expect(await service.isLocked(key)).toBe(false);
    expect(service.usage).toEqual(UNUSED);
  }
};

/** What became of each lock, as the events report it. */
const reports = (): string[] => {
  const seen: string[] = [];
  for (const service of [stock, billing, archive]) {
    for (const event of ['acquired', 'released', 'lost', 'busy'] as const) {
      service.on(event, ({ key }) => seen.push(`${event} ${key}`));
    }
  }
  return seen;
};

describe('withLocks with a fixed lease that is shorter than the wait', () => {
  it.each([
    ['plain locks', {}, []],
    ['fair locks', { mode: 'fair' }, []],
    ['read locks', { mode: 'read' }, []],
    ['a read lock, a write lock and a plain lock', {}, ['read', 'write', undefined]],
  ] as const)('has all of its time from when all are held, with %s', async (_kinds, options, modes) => {
    const blocker = await elsewhere.acquire('key 2', {
      ...options,
      ...('mode' in options && { mode: 'write' }),
    });
    const caller = watched(
      withLocks(ofAll(modes), { ...options, leaseMs: LEASE_MS, waitMs: 60_000 }, (all) => all.remainingMs()),
    );
    await runtime.pass(BLOCKED_MS);
    expect(caller.state).toBe('pending');
    await blocker.release();
    await runtime.pass(LEASE_MS - 1);
    expect(caller).toMatchObject({ state: 'fulfilled', value: LEASE_MS });
    await nothingLeft();
  });

  it('ends after that time: a fixed lease is not renewed while the section runs', async () => {
    const caller = watched(
      withLocks(ofAll(), { leaseMs: LEASE_MS }, async ({ signal, parts }) => {
        await runtime.pass(LEASE_MS);
        return [signal.aborted, ...parts.map(({ lease }) => lease.lost)];
      }),
    );
    await runtime.pass(LEASE_MS);
    expect(caller.value).toEqual([true, true, true, true]);
    await nothingLeft();
  });

  it('is the lease of each module where the modules have one, and the call has none', async () => {
    const fixed = new LockManager(
      new MemoryStore({ shared: spaces[2]! }),
      resolveSettings({ leaseMs: LEASE_MS, waitMs: 60_000 }),
      new Log(),
      runtime,
    );
    const ofModule = new LockService(fixed, undefined, 'fixed');
    const blocker = await elsewhere.acquire('later');
    const caller = watched(
      withLocks(
        [
          { service: ofModule, key: 'first' },
          { service: ofModule, key: 'later' },
        ],
        (all) => all.remainingMs(),
      ),
    );
    await runtime.pass(BLOCKED_MS);
    await blocker.release();
    await runtime.pass(1);
    expect(caller.value).toBe(LEASE_MS);
  });

  it('begins its minimum time when all are held', async () => {
    const blocker = await elsewhere.acquire('key 2');
    const options = { leaseMs: LEASE_MS, holdAtLeastMs: LEASE_MS, waitMs: 60_000 };
    const caller = watched(withLocks(ofAll(), options, () => 'done'));
    await runtime.pass(BLOCKED_MS);
    await blocker.release();
    await runtime.pass(LEASE_MS - 1);
    expect(caller.value).toBe('done');
    for (const { service, key } of ofAll()) expect(await service.isLocked(key)).toBe(true);
    await runtime.pass(1);
    await nothingLeft();
  });

  it('reports each lock when all are held, with the token of its lease, and none where one is taken', async () => {
    const seen = reports();
    const tokens: (number | undefined)[] = [];
    stock.on('acquired', ({ fencingToken }) => tokens.push(fencingToken));
    await withLocks(ofAll(), { leaseMs: LEASE_MS }, (all) => {
      expect(tokens).toEqual([all.of(stock, 'key 0').fencingToken]);
    });
    const names = ['key 0', 'key 1', 'key 2'];
    expect(seen.splice(0)).toEqual([
      ...names.map((name) => `acquired ${name}`),
      ...names.map((name) => `released ${name}`),
    ]);

    const blocker = await elsewhere.acquire('key 2');
    const caller = watched(withLocks(ofAll(), { leaseMs: LEASE_MS, waitMs: 0 }, () => 'ran'));
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'key 2' });
    expect(seen).toEqual(['busy key 2']);
    await blocker.release();
    await nothingLeft();
  });
});

describe('withLocks of many keys', () => {
  const MANY = 3_000;
  const many = (): LockOfService[] =>
    Array.from({ length: MANY }, (_, i) => ({ service: i % 2 ? stock : billing, key: `many ${i}` }));

  it(`holds ${MANY}, and lets nested calls in`, async () => {
    const result = await withLocks(many(), async (all) => {
      expect(all.parts).toHaveLength(MANY);
      expect(stock.held().length + billing.held().length).toBe(MANY);
      const inside = all.of(stock, 'many 1');
      expect(await stock.withLock('many 1', { inside }, ({ key }) => key)).toBe('many 1');
      return currentLease(all.parts[0]!.key).key;
    });
    expect(result).toBe('many 0');
    await nothingLeft();
  });

  it(`releases all of ${MANY} when the last is taken`, async () => {
    const [last] = many().sort((a, b) => (a.key > b.key ? -1 : 1));
    const blocker = await last!.service.acquire(last!.key);
    const attempt = withLocks(many(), { waitMs: 0 }, () => 'ran');
    await expect(attempt).rejects.toMatchObject({ code: 'LOCK_TAKEN', key: last!.key });
    await blocker.release();
    await nothingLeft();
  });
});

describe('withLocks', () => {
  const section = (): string => 'ran';

  it('holds all until a nested call that entered one of them has entered and left another one', async () => {
    const [one, other] = ofAll();
    let fork: Promise<string> | undefined;
    await withLocks([one!, other!], (lease) => {
      const [first, second] = [lease.of(stock, one!.key), lease.of(billing, other!.key)];
      fork = stock.withLock(one!.key, { inside: first }, async () => {
        await settled();
        return billing.withLock(other!.key, { inside: second, waitMs: 0 }, () => 'in');
      });
    });
    expect(await fork).toBe('in');
    await nothingLeft();
  });

  it('refuses options after the section, which would have no effect', async () => {
    const call = withLocks as (...args: unknown[]) => Promise<unknown>;
    await expect(call([{ service: stock, key: 'a' }], section, { waitMs: 0 })).rejects.toThrow(
      'withLocks takes its options before the section: withLocks(locks, options, fn).',
    );
  });

  it.each([
    ['a permits handle', () => stock.permits('a', { permits: 1 })],
    ['an object with one method of a service', () => ({ withLock: () => undefined })],
  ])('refuses %s as the service of a lock', async (_what, make) => {
    const service = make() as unknown as LockService;
    await expect(withLocks([{ service, key: 'a' }], section)).rejects.toThrow(
      'withLocks: the service of lock 1 is no LockService.',
    );
  });

  it.each(['fair', 'exclusive', 'x'])('refuses "%s" as the own mode of a lock', async (mode) => {
    const lock = { service: stock, key: 'a', mode: mode as 'read' };
    await expect(withLocks([lock], section)).rejects.toThrow(
      `the mode of a lock key must be "read" or "write", but is "${mode}".`,
    );
  });
});
