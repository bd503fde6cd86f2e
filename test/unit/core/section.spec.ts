import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { currentLease } from '../../../lib/core/nesting/current-lease.js';
import { currentSection, detached } from '../../../lib/core/nesting/section.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import {
  LockAbortedError,
  LockConfigurationError,
  LockLostError,
  LockNotAcquiredError,
} from '../../../lib/core/errors/lock.errors.js';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { defaultCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { deferred } from '../../support/async.js';
import { Log, watched } from '../../support/core/core-under-test.js';
import { collectGarbage } from '../../support/garbage.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const settings = resolveSettings({ keyPrefix: '' });
const call = (options: Partial<LockCall> = {}): LockCall => ({ ...defaultCall(settings), ...options });

let runtime: VirtualRuntime;
let store: MemoryStore;
let manager: LockManager;
let acquires: () => number;
let log: Log;

const withLock = <T>(
  key: string | string[],
  section: (lease: Lease) => T | PromiseLike<T>,
  options?: Partial<LockCall>,
) => manager.withLock([key].flat(), call(options), section);

/** Takes keys in a call that is proven inside of leases. */
const inside = <T>(
  leases: Lease | readonly Lease[],
  key: string | string[],
  section: (lease: Lease) => T | PromiseLike<T>,
  options?: Partial<LockCall>,
) => withLock(key, section, { ...options, inside: [leases].flat() });

/** Returns whether a caller outside all sections would find the key taken. */
const isTaken = async (key: string): Promise<boolean> => {
  const lease = await detached(() => manager.tryAcquire([key], call({ waitMs: 0 })));
  await lease?.release();
  return lease === null;
};

beforeEach(() => {
  runtime = new VirtualRuntime();
  store = new MemoryStore({ now: () => runtime.now() });

  const exclusive = vi.spyOn(store.kinds.exclusive, 'acquire');
  acquires = () => exclusive.mock.calls.length;
  log = new Log();
  manager = new LockManager(store, settings, log, runtime);
});

describe('a call that is proven inside of a lease', () => {
  it('for its key enters without a request to the store', async () => {
    const tokens = await withLock('a', (outer) =>
      inside(outer, 'a', async (inner) => {
        await turn();
        return [
          outer.fencingToken,
          await inside(inner, 'a', (innermost) => innermost.fencingToken),
          inner.fencingToken,
        ];
      }),
    );
    expect(new Set(tokens).size).toBe(1);
    expect(acquires()).toBe(1);
  });

  it('leaves the lock with its holder when it ends', async () => {
    await withLock('a', async (outer) => {
      await inside(outer, 'a', () => undefined);
      expect(await isTaken('a')).toBe(true);
    });
    expect(await isTaken('a')).toBe(false);
  });

  it('releases nothing when its lease is released twice, and a manual one is no different', async () => {
    await withLock('a', async (outer) => {
      const inner = await manager.acquire(['a'], call({ inside: [outer] }));
      expect(await inner.release()).toBe('released');
      expect(await inner.release()).toBe('released');
      expect(await isTaken('a')).toBe(true);
      await inside(outer, 'a', () => undefined);
    });
    expect(manager.usage.leases).toBe(0);
  });

  it('also has the keys of the leases that its lease is nested in', async () => {
    await withLock('a', (a) =>
      inside(a, 'b', (b) => inside(b, 'a', (own) => inside(own, ['a', 'b'], () => 1))),
    );
    expect(acquires()).toBe(2);
  });

  it('of two leases on its key enters the inner one, which it would wait for otherwise', async () => {
    const call = (a: Lease, b: Lease) => inside([a, b], 'a', () => 'in');
    await withLock('a', (outer) =>
      inside(outer, 'a', async (inner) => {
        expect(await Promise.all([call(outer, inner), call(inner, outer)])).toEqual(['in', 'in']);
      }),
    );
  });

  it('of the outer one of two leases on its key waits for its caller, and is told why', async () => {
    await withLock('a', (outer) =>
      inside(outer, 'a', async () => {
        const wrong = watched(inside(outer, 'a', () => 'ran', { waitMs: 100 }));
        await runtime.pass(100);
        expect(wrong.error).toMatchObject({ code: 'LOCK_TAKEN', heldAround: true });
        const endless = inside(outer, 'a', () => 'ran', { waitMs: Infinity });
        await expect(endless).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
      }),
    );
  });

  it('for another key acquires it from the store', async () => {
    await withLock('a', (a) => inside(a, 'b', () => expect(acquires()).toBe(2)));
  });

  it('with oncePerMs is rejected: its window belongs to the whole lock', async () => {
    await withLock('a', async (lease) => {
      const attempt = inside(lease, 'a', () => undefined, { oncePerMs: 1_000, waitMs: 0 });
      await expect(attempt).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
      const skipping = manager.tryAcquire(['a'], call({ inside: [lease], oncePerMs: 1_000, waitMs: 0 }));
      await expect(skipping).rejects.toBeInstanceOf(LockNotAcquiredError);
    });
  });

  it.each([
    ['read', 'write'],
    ['exclusive', 'read'],
    ['read', 'fair'],
  ] as const)('in a %s lock is rejected at once if it wants a %s lock', async (outer, inner) => {
    await withLock(
      'a',
      async (lease) => {
        const attempt = inside(lease, 'a', () => undefined, { kind: inner, waitMs: Infinity });
        await expect(attempt).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT', key: 'a' });
      },
      { kind: outer },
    );
  });

  it.each([
    ['write', 'read'],
    ['read', 'read'],
    ['exclusive', 'fair'],
    ['fair', 'exclusive'],
  ] as const)('in a %s lock enters if it wants a %s lock', async (outer, inner) => {
    const entered = withLock('a', (lease) => inside(lease, 'a', () => 'in', { kind: inner }), {
      kind: outer,
    });
    expect(await entered).toBe('in');
  });

  it('of another service on its own store acquires there for real', async () => {
    const other = new LockManager(new MemoryStore(), settings, new Log(), runtime);
    await withLock('a', (lease) =>
      other.withLock(['a'], call({ inside: [lease] }), () => expect(other.held()).toHaveLength(1)),
    );
    expect(acquires()).toBe(1);
  });

  it('of another service on the same store waits as any other caller', async () => {
    const other = new LockManager(new MemoryStore({ shared: store.space }), settings, new Log(), runtime);
    await withLock('a', async (lease) =>
      expect(await other.tryAcquire(['a'], call({ inside: [lease], waitMs: 0 }))).toBeNull(),
    );
  });

  it('for several keys enters the held ones and acquires the others', async () => {
    await withLock('b', async (outer) => {
      const lease = await manager.acquire(['a', 'b', 'c'], call({ inside: [outer] }));
      expect([acquires(), lease.keys]).toEqual([3, ['a', 'b', 'c']]);
      await lease.release();
      expect([await isTaken('a'), await isTaken('b'), await isTaken('c')]).toEqual([false, true, false]);
    });
  });

  it('of an acquired lease enters it, and loses it at its release', async () => {
    const lease = await manager.acquire(['a'], call());
    const work = deferred();
    const nested = watched(inside(lease, 'a', (own) => work.promise.then(() => own.lost)));
    await settled();
    await lease.release();
    work.resolve();
    await settled();
    expect(nested.value).toBe(true);
    expect(acquires()).toBe(1);
  });

  it('finds what is around a lease that has ended, and is an ordinary caller after all have', async () => {
    let ended: Lease | undefined;
    await withLock('a', async (a) => {
      await inside(a, 'a', (own) => void (ended = own));
      expect(await inside(ended!, 'b', (b) => inside(b, 'a', () => 'in'))).toBe('in');
      expect(acquires()).toBe(2);
    });
    await inside(ended!, 'a', () => expect(acquires()).toBe(3));
  });

  it('keeps no ended leases: chains of nested calls do not grow', async () => {
    let lease = await manager.acquire(['a0'], call());
    for (let i = 1; i < 100; i += 1) {
      const next = await manager.acquire([`a${i}`], call({ inside: [lease] }));
      await lease.release();
      lease = next;
    }
    let length = 0;
    for (let one: Lease | undefined = lease; one; length += 1) [one] = one.outer;
    expect(length).toBe(1);
    await lease.release();
  });

  it('of a lost lease fails with its loss, also after the end of its section, and without a section around', async () => {
    let lost: Lease | undefined;
    await withLock('a', async (lease) => {
      lost = lease;
      await manager.forceUnlock('a');
    });
    for (const keys of [['a'], ['a', 'b']]) {
      await expect(inside(lost!, keys, () => 'ran')).rejects.toBeInstanceOf(LockLostError);
    }
  });

  it('is no running work for a stopping app if its lease has ended, or is of another service', async () => {
    const other = new LockManager(new MemoryStore(), settings, new Log(), runtime);
    const [released, foreign, held] = [
      await manager.acquire(['r'], call()),
      await other.acquire(['f'], call()),
      await manager.acquire(['h'], call()),
    ];
    await released.release();
    manager.refuseNew();
    for (const lease of [released, foreign]) {
      const rejected = manager.acquire(['n'], call({ inside: [lease] }));
      await expect(rejected).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    }
    expect(await inside(held, 'n', () => 'runs on')).toBe('runs on');
    await held.release();
  });

  it('5,000 levels deep ends with a release of the outermost lease', async () => {
    const outermost = await manager.acquire(['a'], call());
    let innermost = outermost;
    for (let i = 0; i < 5_000; i += 1)
      innermost = await manager.acquire(['a'], call({ inside: [innermost] }));
    expect(await outermost.release()).toBe('released');
    expect(innermost.lost).toBe(true);
    expect(await isTaken('a')).toBe(false);
  });
});

describe('a call in the context of a section that holds its key', () => {
  const warnings = (): readonly string[] => log.lines.filter((text) => text.includes('holds the key'));

  it('is an ordinary caller: it waits, has a token of its own, and releases by itself', async () => {
    let queued: Promise<number> | undefined;
    const first = await withLock('a', async (lease) => {
      queued = withLock('a', async (own) => {
        expect(await isTaken('a')).toBe(true);
        return own.fencingToken;
      });
      await settled();
      expect(acquires()).toBe(1);
      return lease.fencingToken;
    });
    expect(await queued).toBeGreaterThan(first);
    expect(await isTaken('a')).toBe(false);
  });

  it('gets LOCK_TAKEN that says so, or null, with one warning for both labels', async () => {
    await withLock(
      'a',
      async () => {
        const waits = watched(withLock('a', () => 'ran', { waitMs: 100, label: 'inner' }));
        await runtime.pass(100);
        expect(waits.error).toMatchObject({ code: 'LOCK_TAKEN', heldAround: true });
        expect((waits.error as Error).message).toMatch(
          /a section of "outer" .*lease\.call.*task of a queue/s,
        );
        expect(await manager.tryAcquire(['a'], call({ waitMs: 0, label: 'inner' }))).toBeNull();
        expect(warnings()).toHaveLength(1);
        expect(await manager.tryAcquire(['a'], call({ waitMs: 0, label: 'another' }))).toBeNull();
        expect(warnings()).toHaveLength(2);
      },
      { label: 'outer' },
    );
    const [first] = warnings();
    expect(first).toMatch(/^"inner" asks for "a", and a section of "outer"/);
    expect(first).toContain('do not await that queue while you hold this key');
  });

  it('warns again for a pair that 1,000 others have displaced', async () => {
    await withLock('a', async () => {
      const ask = (label: string) => manager.tryAcquire(['a'], call({ waitMs: 0, label }));
      for (let i = 0; i <= 1_000; i += 1) await ask(`call ${i}`);
      await ask('call 1000');
      expect(warnings()).toHaveLength(1_001);
      await ask('call 0');
      expect(warnings()).toHaveLength(1_002);
    });
  });

  it('joins the readers of its process, with a warning', async () => {
    const read = { kind: 'read' } as const;
    expect(await withLock('a', () => withLock('a', () => 'beside', read), read)).toBe('beside');
    expect(warnings()).toHaveLength(1);
  });

  it('that wants to write waits for its readers as any other writer', async () => {
    await withLock(
      'a',
      async () => {
        const writer = watched(withLock('a', () => 'ran', { kind: 'write', waitMs: 100 }));
        await runtime.pass(99);
        expect(writer.state).toBe('pending');
        await runtime.pass(1);
        expect(writer.error).toMatchObject({ code: 'LOCK_TAKEN', heldAround: true });
      },
      { kind: 'read' },
    );
  });

  it('is rejected at once if it would wait without end, also for a permit', async () => {
    for (const kind of ['exclusive', 'permit'] as const) {
      const permits = kind === 'permit' ? 3 : undefined;
      const endless = { kind, permits, waitMs: Infinity };
      await withLock(
        kind,
        async () => {
          const nested = withLock(kind, () => undefined, endless);
          await expect(nested).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT', key: kind });
          await expect(nested).rejects.toThrow(
            kind === 'permit'
              ? /permit does not nest.*AsyncResource\.bind.*detached/s
              : /lease\.call.*inside.*AsyncResource\.bind.*detached/s,
          );
        },
        { kind, permits },
      );
    }
  });

  it('for several keys holds those before the held one while it waits for that', async () => {
    await withLock('b', async () => {
      const both = watched(withLock(['a', 'b'], () => 'ran', { waitMs: 100 }));
      await settled();
      expect(await isTaken('a')).toBe(true);
      await runtime.pass(100);
      expect(both.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'b', heldAround: true });
      await settled();
      expect(await isTaken('a')).toBe(false);
    });
  });

  it('takes another permit, with a warning', async () => {
    const permit = { kind: 'permit', permits: 2 } as const;
    expect(await withLock('p', () => withLock('p', () => 'second', permit), permit)).toBe('second');
    expect(warnings()).toEqual([expect.stringContaining('take the permit once')]);
  });

  it('warns also where no lock excludes, as in mode off of the testing module', async () => {
    const never = new LockManager(store, { ...settings, excludes: false }, log, runtime);
    const nested = never.withLock(['a'], call(), () => never.withLock(['a'], call(), () => 'ran'));
    expect(await nested).toBe('ran');
    expect(warnings()).toHaveLength(1);
    expect(
      await never.withLock(['a'], call(), (own) => never.withLock(['a'], call({ inside: [own] }), () => 1)),
    ).toBe(1);
    expect(warnings()).toHaveLength(1);
  });

  it('in detached() has no section around: no warning, no error of its own', async () => {
    let beside: Promise<string> | undefined;
    await withLock('a', async () => {
      beside = detached(() => withLock('a', () => 'ran', { waitMs: Infinity }));
      await settled();
    });
    expect(await beside).toBe('ran');
    expect(warnings()).toEqual([]);
  });

  it('is an ordinary caller after the key was lost or released around it, without a warning', async () => {
    await withLock('a', async (lease) => {
      await lease.release();
      expect(await withLock('a', () => 'again', { waitMs: Infinity })).toBe('again');
    });
    await withLock('a', async () => {
      await manager.forceUnlock('a');
      expect(await withLock('a', () => 'again')).toBe('again');
    });
    expect(warnings()).toEqual([]);
  });

  it('of lease.run is an ordinary caller, too', async () => {
    const lease = await manager.acquire(['a'], call());
    const ask = () => manager.tryAcquire(['a'], call({ waitMs: 0 }));
    expect([await ask(), await lease.run(ask)]).toEqual([null, null]);
    expect(await lease.run(() => inside(currentLease(), 'a', () => 'in'))).toBe('in');
    await lease.release();
    expect(acquires()).toBe(1);
  });
});

/** Sections that note when they are in, to see whether two ever are. */
class Room {
  inside = 0;
  max = 0;
  readonly visits: string[] = [];

  readonly visit = async (name = ''): Promise<void> => {
    this.inside += 1;
    this.max = Math.max(this.max, this.inside);
    this.visits.push(name);
    for (let i = 0; i < 3; i += 1) await turn();
    this.inside -= 1;
  };
}

describe('siblings', () => {
  it('exclude each other, in the order in which they came', async () => {
    const room = new Room();
    const names = ['1', '2', '3', '4', '5'];
    await withLock('a', (a) => Promise.all(names.map((name) => inside(a, 'a', () => room.visit(name)))));
    expect([room.max, room.visits, acquires()]).toEqual([1, names, 1]);
  });

  it('that are nested in different depths exclude each other too', async () => {
    const room = new Room();
    await withLock('a', (a) =>
      Promise.all([
        inside(a, 'b', (b) => inside(b, 'a', () => room.visit())),
        inside(a, 'a', () => room.visit()),
        inside(a, 'c', (c) => inside(c, 'd', (d) => inside(d, 'a', () => room.visit()))),
        inside(a, 'a', (own) => inside(own, 'a', () => room.visit())),
      ]),
    );
    expect([room.max, room.visits.length]).toEqual([1, 4]);
  });

  it('inside a nested section exclude each other, and its own siblings', async () => {
    const room = new Room();
    const family = (outer: Lease) =>
      inside(outer, 'a', (own) => Promise.all([1, 2].map(() => inside(own, 'a', () => room.visit()))));
    await withLock('a', (a) => Promise.all([family(a), family(a)]));
    expect([room.max, room.visits.length, acquires()]).toEqual([1, 4, 1]);
  });

  it('of one lease that runs two sections at once exclude each other', async () => {
    const room = new Room();
    const lease = await manager.acquire(['a'], call());
    const run = () => lease.run(() => inside(lease, 'a', () => room.visit()));
    await Promise.all([run(), run(), lease.run(() => Promise.all([run(), run()]))]);
    expect([room.max, room.visits.length, acquires()]).toEqual([1, 4, 1]);
    await lease.release();
  });

  it('wait no longer than their own wait, and leave the others waiting', async () => {
    const work = deferred();
    await withLock('a', async (a) => {
      const first = watched(inside(a, 'a', () => work.promise));
      const [short, long] = [
        watched(inside(a, 'a', () => 'short', { waitMs: 100 })),
        watched(inside(a, 'a', () => 'long', { waitMs: 5_000 })),
      ];
      await runtime.pass(100);
      expect([first.state, short.state, long.state]).toEqual(['pending', 'rejected', 'pending']);
      expect(short.error).toMatchObject({ code: 'LOCK_TAKEN' });
      work.resolve();
      await settled();
      expect(long.value).toBe('long');
    });
  });

  it('a wait of 0 is refused at once', async () => {
    await withLock('a', async (a) => {
      const lease = await manager.acquire(['a'], call({ inside: [a] }));
      const refused = watched(manager.tryAcquire(['a'], call({ waitMs: 0, inside: [a] })));
      await runtime.pass(0);
      await lease.release();
      expect(refused).toMatchObject({ state: 'fulfilled', value: null });
    });
  });

  it('can be called off while they wait', async () => {
    const controller = new AbortController();
    const work = deferred();
    await withLock('a', async (a) => {
      const first = inside(a, 'a', () => work.promise);
      const second = watched(inside(a, 'a', () => undefined, { signal: controller.signal }));
      await settled();
      controller.abort('enough');
      await settled();
      expect(second.error).toBeInstanceOf(LockAbortedError);
      expect(second.error).toMatchObject({ cause: 'enough' });
      work.resolve();
      await first;
    });
  });

  it('waiting when the lock is lost are told so, and so are those that come later', async () => {
    const work = deferred();
    const outcome = withLock('a', async (a) => {
      const first = inside(a, 'a', () => work.promise);
      const second = watched(inside(a, 'a', () => 'ran', { waitMs: 60_000 }));
      await settled();
      await manager.forceUnlock('a');
      await settled();
      const later = watched(inside(a, 'a', () => 'ran'));
      await settled();
      work.resolve();
      await first;
      return [second.error, later.error];
    });
    for (const error of await outcome) {
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ message: expect.stringContaining('forceUnlock') as string });
    }
    expect(acquires()).toBe(1);
    expect(manager.usage).toMatchObject({ leases: 0, holds: 0, keys: 0 });
  });

  it('waiting when the lock is released by hand take it for real, within their own wait', async () => {
    const [within, outside] = [deferred(), deferred()];
    const lease = await manager.acquire(['a'], call());
    await lease.run(async () => {
      const first = watched(
        inside(lease, 'a', async (own) => {
          const { signal } = own;
          await within.promise;
          return [own.lost, signal.aborted, own.remainingMs()];
        }),
      );
      const patient = watched(
        inside(lease, 'a', () => outside.promise.then(() => 'ran'), { waitMs: 60_000 }),
      );
      const hasty = watched(inside(lease, 'a', () => 'ran', { waitMs: 500 }));
      await settled();
      expect(acquires()).toBe(1);
      expect(await lease.release()).toBe('released');
      await settled();
      expect(acquires(), 'the first of those who waited asks the store').toBe(2);
      await runtime.pass(500);
      expect(hasty.error).toMatchObject({ code: 'LOCK_TAKEN' });
      within.resolve();
      outside.resolve();
      await settled();
      expect(first.value, 'who was inside is told').toEqual([true, true, 0]);
      expect(patient.value).toBe('ran');
    });
    expect(manager.usage).toMatchObject({ leases: 0, holds: 0, keys: 0 });
  });

  it('a throwing one lets the next one in', async () => {
    await withLock('a', async (a) => {
      const [first, second] = await Promise.allSettled([
        inside(a, 'a', () => Promise.reject(new Error('mine'))),
        inside(a, 'a', () => 'in'),
      ]);
      expect(first).toMatchObject({ reason: new Error('mine') });
      expect(second).toMatchObject({ value: 'in' });
    });
  });
});

describe('a fork that is not awaited', () => {
  it('that is in, or on its way in, holds up the end of its parent', async () => {
    const work = deferred();
    let ended = false;
    const parent = withLock('a', (a) => {
      void inside(a, 'a', () => work.promise);
    }).then(() => (ended = true));
    await settled();
    expect(ended).toBe(false);
    expect(await isTaken('a')).toBe(true);
    work.resolve();
    await parent;
  });

  it('enters further keys of its parent while it holds up its end', async () => {
    const work = deferred();
    let fork: Promise<string> | undefined;
    const parent = withLock(['a', 'b'], (ab) => {
      fork = inside(ab, 'a', (a) => work.promise.then(() => inside(a, 'b', () => 'b', { waitMs: Infinity })));
    });
    await settled();
    work.resolve();
    await settled();
    expect(await fork).toBe('b');
    await parent;
    expect(acquires()).toBe(2);
    expect(manager.usage).toMatchObject({ leases: 0, holds: 0, keys: 0 });
  });

  it('for several keys enters the later ones, too, while it holds up the end of their lease', async () => {
    const m = await manager.acquire(['m'], call());
    let fork: Promise<string> | undefined;
    const parent = withLock(['a', 'z'], (az) => {
      fork = inside(az, ['a', 'm', 'z'], () => 'ran', { waitMs: Infinity });
    });
    await settled();
    await m.release();
    expect(await fork).toBe('ran');
    await parent;
    expect(acquires()).toBe(4);
  });

  it('and comes after its parent has ended acquires() for real', async () => {
    const late = deferred();
    let fork: Promise<number> | undefined;
    const first = await withLock('a', (lease) => {
      fork = late.promise.then(() => inside(lease, 'a', (own) => own.fencingToken));
      return lease.fencingToken;
    });
    // Taken without waiting, it is for this one lease: it is not passed on.
    const holder = await manager.acquire(['a'], call({ waitMs: 0 }));
    late.resolve();
    await settled();
    expect(acquires(), 'it waits behind the holder').toBe(2);
    await holder.release();
    expect(await fork).toBeGreaterThan(first);
    expect(acquires()).toBe(3);
  });

  it('belongs to the nearest section that is still open', async () => {
    const late = deferred();
    let fork: Promise<void> | undefined;
    await withLock('a', async (a) => {
      await inside(a, 'b', (b) => {
        fork = late.promise.then(async () => {
          expect(currentLease().key).toBe('a');
          await inside(b, 'a', () => undefined);
          await inside(b, 'b', () => undefined);
        });
      });
      late.resolve();
      await fork;
    });
    expect(acquires(), 'a and b, and b once more').toBe(3);
  });

  it('in detached() is outside of every section: its parent excludes it, and does not wait for it', async () => {
    let fork: Promise<number> | undefined;
    const first = await withLock('a', async (lease) => {
      fork = detached(() => withLock('a', (own) => own.fencingToken));
      await settled();
      expect(acquires()).toBe(1);
      return lease.fencingToken;
    });
    expect(await fork).toBeGreaterThan(first);
    await withLock('a', () => detached(() => expect(() => currentLease()).toThrow(LockConfigurationError)));
  });
});

describe('sections that follow each other', () => {
  const chainLength = (): number => {
    let length = 0;
    for (let frame = currentSection() as { enclosing?: unknown } | undefined; frame; length += 1) {
      frame = frame.enclosing as { enclosing?: unknown } | undefined;
    }
    return length;
  };

  it('do not chain when each ends as soon as it has started the next', async () => {
    let runs = 0;
    let longest = 0;
    const done = deferred();
    const section = async (): Promise<void> => {
      runs += 1;
      longest = Math.max(longest, chainLength());
      if (runs === 500) return done.resolve();
      const started = deferred();
      const next = (): Promise<void> => {
        started.resolve();
        return section();
      };
      // The end of the next one is not awaited. It begins while this one is still open.
      withLock(`key-${runs}`, next).catch(done.reject);
      await started.promise;
    };
    await withLock('key-0', section);
    await done.promise;
    expect(longest).toBeLessThanOrEqual(4);
  });

  it('do not chain when each starts the next after it has ended', async () => {
    let runs = 0;
    let longest = 0;
    const done = deferred();
    const again = (): void => {
      withLock('a', () => {
        runs += 1;
        longest = Math.max(longest, chainLength());
        if (runs === 500) return done.resolve();
        setImmediate(again);
      }).catch(done.reject);
    };
    again();
    await done.promise;
    expect(longest).toBe(1);
  });

  it('leave nothing of the earlier ones in memory, though the later ones run in their context', async () => {
    const leases: WeakRef<Lease>[] = [];
    const done = deferred();
    const hold = deferred();
    const again = (): void => {
      withLock('a', (lease) => {
        leases.push(new WeakRef(lease));
        if (leases.length === 200) {
          done.resolve();
          return hold.promise;
        }
        setImmediate(again);
      }).catch(done.reject);
    };
    again();
    await done.promise;
    await collectGarbage();
    const alive = leases.filter((one) => one.deref() !== undefined).length;
    expect(alive, 'the one that runs, and perhaps the one before').toBeLessThanOrEqual(2);
    hold.resolve();
  });
});

describe('currentLease', () => {
  it('is the innermost, or the innermost with the key', async () => {
    await withLock('a', (a) =>
      withLock(['b', 'c'], (bc) => {
        expect(currentLease()).toBe(bc);
        expect(currentLease('c')).toBe(bc);
        expect(currentLease('a')).toBe(a);
        expect(() => currentLease('d')).toThrow(/"d"/);
      }),
    );
  });

  it('outside of a section is an error that says where it belongs', () => {
    expect(() => currentLease()).toThrow(LockConfigurationError);
    expect(() => currentLease()).toThrow(/@Locked|withLock/);
  });
});

describe('keys out of order', () => {
  const warnings = (): readonly string[] => log.lines.filter((text) => text.includes('the other way round'));

  it('are waited for, with one warning of each service', async () => {
    await withLock('b', async () => {
      await expect(withLock('c', () => 'in order', { waitMs: Infinity })).resolves.toBe('in order');
      expect(warnings()).toEqual([]);
      await expect(withLock('a', () => 'fine', { waitMs: Infinity })).resolves.toBe('fine');
      await expect(withLock('a', () => 'fine', { waitMs: 1_000 })).resolves.toBe('fine');
    });
    expect(warnings()).toHaveLength(1);
    expect(manager.usage).toMatchObject({ leases: 0, holds: 0, keys: 0 });
  });

  it('are none when the section around has lost its lock', async () => {
    await withLock('b', async () => {
      await manager.forceUnlock('b');
      await expect(withLock('a', () => 'fine', { waitMs: Infinity })).resolves.toBe('fine');
    });
    expect(warnings()).toEqual([]);
  });
});
