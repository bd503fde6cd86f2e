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
import { LockManager } from '../../../lib/core/lock-manager.js';
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

const withLock = <T>(
  key: string | string[],
  section: (lease: Lease) => T | PromiseLike<T>,
  options?: Partial<LockCall>,
) => manager.withLock([key].flat(), call(options), section);

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
  manager = new LockManager(store, settings, new Log(), runtime);
});

describe('a nested call', () => {
  it('for a key that an enclosing section holds goes in without asking the store', async () => {
    const tokens = await withLock('a', (outer) =>
      withLock('a', async (inner) => {
        await turn();
        return [
          outer.fencingToken,
          await withLock('a', (innermost) => innermost.fencingToken),
          inner.fencingToken,
        ];
      }),
    );
    expect(new Set(tokens).size).toBe(1);
    expect(acquires()).toBe(1);
  });

  it('leaves the lock with its holder when it ends', async () => {
    await withLock('a', async () => {
      await withLock('a', () => undefined);
      expect(await isTaken('a')).toBe(true);
    });
    expect(await isTaken('a')).toBe(false);
  });

  it('releases nothing when its lease is released twice, and a manual one is no different', async () => {
    await withLock('a', async () => {
      const inner = await manager.acquire(['a'], call());
      expect(await inner.release()).toBe('released');
      expect(await inner.release()).toBe('released');
      expect(await isTaken('a')).toBe(true);
      await withLock('a', () => undefined);
    });
    expect(manager.usage.leases).toBe(0);
  });

  it('a inside b inside a goes in: no deadlock with oneself', async () => {
    const order: string[] = [];
    await withLock('a', () =>
      withLock('b', () => withLock('a', () => withLock('b', () => order.push('in')))),
    );
    expect(order).toEqual(['in']);
    expect(acquires()).toBe(2);
  });

  it('for another key asks the store', async () => {
    await withLock('a', () => withLock('b', () => expect(acquires()).toBe(2)));
  });

  it('with reentrant: false is an immediate error, which is no busy lock', async () => {
    await withLock('a', async () => {
      const attempt = withLock('a', () => undefined, { reentrant: false, waitMs: Infinity });
      await expect(attempt).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
      await expect(manager.tryAcquire(['a'], call({ reentrant: false }))).rejects.toBeInstanceOf(
        LockNotAcquiredError,
      );
    });
  });

  it('of another service on its own store acquires() there for real', async () => {
    const other = new LockManager(new MemoryStore(), settings, new Log(), runtime);
    await withLock('a', () => other.withLock(['a'], call(), () => expect(other.held()).toHaveLength(1)));
    expect(acquires()).toBe(1);
  });

  it('of another service on the same store has to wait like anybody else', async () => {
    const other = new LockManager(new MemoryStore({ shared: store.space }), settings, new Log(), runtime);
    await withLock('a', async () => expect(await other.tryAcquire(['a'], call({ waitMs: 0 }))).toBeNull());
  });

  it('takes part in several keys: what is held is entered, the rest is acquired', async () => {
    await withLock('b', async () => {
      const lease = await manager.acquire(['a', 'b', 'c'], call());
      expect([acquires(), lease.keys]).toEqual([3, ['a', 'b', 'c']]);
      await lease.release();
      expect([await isTaken('a'), await isTaken('b'), await isTaken('c')]).toEqual([false, true, false]);
    });
  });

  it('acquire opens no section: only lease.run does', async () => {
    const lease = await manager.acquire(['a'], call());
    expect(await manager.tryAcquire(['a'], call({ waitMs: 0 }))).toBeNull();
    expect(await lease.run(() => withLock('a', () => 'inside'))).toBe('inside');
    expect(await manager.tryAcquire(['a'], call({ waitMs: 0 }))).toBeNull();
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
    await withLock('a', () => Promise.all(names.map((name) => withLock('a', () => room.visit(name)))));
    expect([room.max, room.visits, acquires()]).toEqual([1, names, 1]);
  });

  it('that are nested in different depths exclude each other too', async () => {
    const room = new Room();
    await withLock('a', () =>
      Promise.all([
        withLock('b', () => withLock('a', () => room.visit())),
        withLock('a', () => room.visit()),
        withLock('c', () => withLock('d', () => withLock('a', () => room.visit()))),
        withLock('a', () => withLock('a', () => room.visit())),
      ]),
    );
    expect([room.max, room.visits.length]).toEqual([1, 4]);
  });

  it('inside a nested section exclude each other, and its own siblings', async () => {
    const room = new Room();
    const family = () =>
      withLock('a', () => Promise.all([1, 2].map(() => withLock('a', () => room.visit()))));
    await withLock('a', () => Promise.all([family(), family()]));
    expect([room.max, room.visits.length, acquires()]).toEqual([1, 4, 1]);
  });

  it('of one lease that runs two sections at once exclude each other', async () => {
    const room = new Room();
    const lease = await manager.acquire(['a'], call());
    const run = () => lease.run(() => withLock('a', () => room.visit()));
    await Promise.all([run(), run(), lease.run(() => Promise.all([run(), run()]))]);
    expect([room.max, room.visits.length, acquires()]).toEqual([1, 4, 1]);
    await lease.release();
  });

  it('wait no longer than their own wait, and leave the others waiting', async () => {
    const work = deferred();
    await withLock('a', async () => {
      const first = watched(withLock('a', () => work.promise));
      const [short, long] = [
        watched(withLock('a', () => 'short', { waitMs: 100 })),
        watched(withLock('a', () => 'long', { waitMs: 5_000 })),
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
    await withLock('a', async () => {
      const lease = await manager.acquire(['a'], call());
      const refused = watched(manager.tryAcquire(['a'], call({ waitMs: 0 })));
      await runtime.pass(0);
      await lease.release();
      expect(refused).toMatchObject({ state: 'fulfilled', value: null });
    });
  });

  it('can be called off while they wait', async () => {
    const controller = new AbortController();
    const work = deferred();
    await withLock('a', async () => {
      const first = withLock('a', () => work.promise);
      const second = watched(withLock('a', () => undefined, { signal: controller.signal }));
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
    const outcome = withLock('a', async () => {
      const first = withLock('a', () => work.promise);
      const second = watched(withLock('a', () => 'ran', { waitMs: 60_000 }));
      await settled();
      await manager.forceUnlock('a');
      await settled();
      const later = watched(withLock('a', () => 'ran'));
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
    const [inside, outside] = [deferred(), deferred()];
    const lease = await manager.acquire(['a'], call());
    await lease.run(async () => {
      const first = watched(
        withLock('a', async (own) => {
          const { signal } = own;
          await inside.promise;
          return [own.lost, signal.aborted, own.remainingMs()];
        }),
      );
      const patient = watched(withLock('a', () => outside.promise.then(() => 'ran'), { waitMs: 60_000 }));
      const hasty = watched(withLock('a', () => 'ran', { waitMs: 500 }));
      await settled();
      expect(acquires()).toBe(1);
      expect(await lease.release()).toBe('released');
      await settled();
      expect(acquires(), 'the first of those who waited asks the store').toBe(2);
      await runtime.pass(500);
      expect(hasty.error).toMatchObject({ code: 'LOCK_TAKEN' });
      inside.resolve();
      outside.resolve();
      await settled();
      expect(first.value, 'who was inside is told').toEqual([true, true, 0]);
      expect(patient.value).toBe('ran');
    });
    expect(manager.usage).toMatchObject({ leases: 0, holds: 0, keys: 0 });
  });

  it('a throwing one lets the next one in', async () => {
    await withLock('a', async () => {
      const [first, second] = await Promise.allSettled([
        withLock('a', () => Promise.reject(new Error('mine'))),
        withLock('a', () => 'in'),
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
    const parent = withLock('a', () => {
      void withLock('a', () => work.promise);
    }).then(() => (ended = true));
    await settled();
    expect(ended).toBe(false);
    expect(await isTaken('a')).toBe(true);
    work.resolve();
    await parent;
  });

  it('and comes after its parent has ended acquires() for real', async () => {
    const late = deferred();
    let fork: Promise<number> | undefined;
    const first = await withLock('a', (lease) => {
      fork = late.promise.then(() => withLock('a', (own) => own.fencingToken));
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
    await withLock('a', async () => {
      await withLock('b', () => {
        fork = late.promise.then(async () => {
          expect(currentLease().key).toBe('a');
          await withLock('a', () => undefined);
          await withLock('b', () => undefined);
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
  it('are never waited for without end', async () => {
    await withLock('b', async () => {
      const attempt = withLock('a', () => undefined, { waitMs: Infinity });
      await expect(attempt).rejects.toBeInstanceOf(LockConfigurationError);
      await expect(withLock('a', () => 'fine', { waitMs: 1_000 })).resolves.toBe('fine');
      await expect(withLock('c', () => 'in order', { waitMs: Infinity })).resolves.toBe('in order');
      await expect(withLock(['b', 'c'], () => 'in order', { waitMs: Infinity })).resolves.toBe('in order');
      await expect(withLock(['a', 'b'], () => 0, { waitMs: Infinity })).rejects.toThrow(/deadlock/);
    });
    expect(manager.usage).toMatchObject({ leases: 0, holds: 0, keys: 0 });
  });

  it('a section that lost its lock blocks no other', async () => {
    await withLock('b', async () => {
      await manager.forceUnlock('b');
      await expect(withLock('a', () => 'fine', { waitMs: Infinity })).resolves.toBe('fine');
    });
  });
});
