import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { currentLease, LockConfigurationError, type Lease } from 'nest-redis-lock';
import { deferred, until } from '../support/async.js';
import { collectGarbage } from '../support/garbage.js';
import { Lab, newKey, useLab } from '../support/redis/lab.js';

const lab = useLab();

describe('a nested call', () => {
  it('sends no request to Redis, also through unaware code; only the outermost exit deletes', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const deduct = (inside: Lease) => locks.withLock(key, { waitMs: 0, inside }, (own) => own.fencingToken);
    await locks.withLock(key, async (outer) => {
      const before = await lab.calls();
      const hold = (await lab.hold(key))!;
      expect(await deduct(outer)).toBe(outer.fencingToken);
      await locks.withLock(key, { inside: outer }, async (inner) => {
        expect(await deduct(inner)).toBe(outer.fencingToken);
        expect(await lab.hold(key)).toMatchObject({ owner: hold.owner });
      });
      expect(await lab.hold(key)).toMatchObject({ owner: hold.owner });
      expect((await lab.calls())['evalsha']).toBe(before['evalsha']);
    });
    expect(await lab.hold(key)).toBeNull();
  });

  it('keeps the lease of the outer one when it ends', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await locks.withLock(key, { leaseMs: 60_000 }, async (inside) => {
      await locks.withLock(key, { leaseMs: 1_000, inside }, async () => {
        expect((await lab.hold(key))!.leftMs).toBeGreaterThan(30_000);
      });
      expect((await lab.hold(key))!.leftMs).toBeGreaterThan(30_000);
    });
    expect(await lab.hold(key)).toBeNull();
  });

  it('of an acquired lease needs no section; a call in lease.run() that does not pass the lease is an ordinary caller', async () => {
    const { locks } = lab.open();
    await using lease = await locks.acquire(newKey());
    expect(() => currentLease()).toThrow(LockConfigurationError);
    await using again = (await locks.tryAcquire(lease.key, { inside: lease }))!;
    expect(again.fencingToken).toBe(lease.fencingToken);
    await lease.run(async () => {
      expect(currentLease()).toBe(lease);
      expect(await locks.tryAcquire(lease.key)).toBeNull();
    });
    expect(await lab.hold(lease.key)).not.toBeNull();
  });
});

describe('a lock inside of another one', () => {
  it('on other keys are locks of their own, released in their turn', async () => {
    const { locks } = lab.open();
    const [a, b] = [newKey('a'), newKey('b')];
    await locks.withLock(a, async () => {
      await locks.withLock(b, async () => {
        expect(currentLease().key).toBe(b);
        expect(currentLease(a).key).toBe(a);
        expect(locks.held().map(({ key }) => key)).toEqual([a, b]);
      });
      expect(await lab.hold(b)).toBeNull();
      expect(await lab.hold(a)).not.toBeNull();
    });
  });

  it('leaves the contexts of the caller alone: it neither replaces what was stored nor stays after the call', async () => {
    const { locks } = lab.open();
    const store = new AsyncLocalStorage<string>();
    await store.run('request 7', async () => {
      await locks.withLock(newKey(), async () => {
        await lab.admin.ping();
        expect(store.getStore()).toBe('request 7');
      });
      expect(store.getStore()).toBe('request 7');
      expect(() => currentLease()).toThrow(LockConfigurationError);
    });
  });
});

describe('a lock of one service is no lock of another', () => {
  it('on another Redis, under the same key: it is taken there', async () => {
    await using elsewhere = await Lab.start();
    const [here, there] = [lab.open(), elsewhere.open()];
    const key = newKey();
    await here.locks.withLock(key, (outer) =>
      there.locks.withLock(key, { inside: outer }, async (inner) => {
        expect([await lab.hold(key), await elsewhere.hold(key)]).not.toContain(null);
        const again = () => expect(there.locks.held()).toHaveLength(1);
        await here.locks.withLock(key, { inside: inner }, again);
      }),
    );
    expect(await elsewhere.hold(key)).toBeNull();
  });

  it('on the same Redis in the same process: it is taken', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    await one.locks.withLock(key, async (inside) => {
      expect(await two.locks.tryAcquire(key, { inside })).toBeNull();
    });
  });
});

describe('siblings inside a lock', () => {
  it('exclude each other, also inside nested locks and across processes', async () => {
    const [one, two] = [lab.open({ waitMs: 20_000 }), lab.open({ waitMs: 20_000 })];
    const key = newKey();
    let inside = 0;
    let visits = 0;
    const visit = async (): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await lab.admin.ping();
      visits += 1;
      inside -= 1;
    };
    const family = ({ locks }: typeof one) =>
      locks.withLock(key, (outer) => {
        const nested = (inside: Lease) => locks.withLock(key, { inside }, visit);
        return Promise.all([
          nested(outer),
          locks.withLock(newKey(), { inside: outer }, nested),
          locks.withLock(key, { inside: outer }, (inner) => Promise.all([nested(inner), nested(inner)])),
        ]);
      });
    await Promise.all([family(one), family(two), family(one), family(two)]);
    expect(visits).toBe(16);
    await lab.nothingLeft(one, two);
  });
});

describe('what leaves a section', () => {
  it('by an event is an ordinary caller: the listener waits for the section that emitted', async () => {
    const { locks } = lab.open({ waitMs: 10_000 });
    const key = newKey();
    const bus = new EventEmitter();
    const diary: string[] = [];
    const handled: Promise<void>[] = [];
    bus.on('written', () => handled.push(locks.withLock(key, () => void diary.push('listener in'))));
    await locks.withLock(key, async () => {
      diary.push('writer in');
      bus.emit('written');
      for (let i = 0; i < 5; i += 1) await lab.admin.ping();
      diary.push('writer out');
    });
    await Promise.all(handled);
    expect(diary).toEqual(['writer in', 'writer out', 'listener in']);
  });

  it('by outliving its parent takes the lock for real', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const late = deferred();
    let fork: Promise<number> | undefined;
    const first = await one.locks.withLock(key, (inside) => {
      fork = late.promise.then(() => one.locks.withLock(key, { inside }, (own) => own.fencingToken));
      return inside.fencingToken;
    });
    const lease = await two.locks.acquire(key);
    late.resolve();
    await lab.waiting(key);
    await lease.release();
    expect(await fork).toBeGreaterThan(lease.fencingToken);
    expect(lease.fencingToken).toBeGreaterThan(first);
  });

  it('to start itself again keeps no memory of earlier calls: 2,000 in a row', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const payloads: WeakRef<object>[] = [];
    const done = deferred();
    const stay = deferred();
    const again = (): void => {
      const payload = { bytes: new Uint8Array(1_000) };
      payloads.push(new WeakRef(payload));
      locks
        .withLock(key, (lease) => {
          // What a request leaves on its lease, such as a listener that knows the payload.
          lease.signal.addEventListener('abort', () => payload.bytes.fill(0));
          if (payloads.length < 2_000) {
            setImmediate(again);
            return undefined;
          }
          done.resolve();
          return stay.promise;
        })
        .catch(done.reject);
    };
    again();
    await done.promise;
    await collectGarbage();
    expect(payloads.filter((one) => one.deref() !== undefined).length).toBeLessThan(20);
    stay.resolve();
    await until(() => locks.usage.leases === 0);
  });
});
