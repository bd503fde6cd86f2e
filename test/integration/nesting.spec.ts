import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { currentLease, detached, LockConfigurationError } from 'nest-redis-lock';
import { deferred, until, within } from '../support/async.js';
import { collectGarbage } from '../support/garbage.js';
import { Lab, newKey, useLab } from '../support/redis/lab.js';

const lab = useLab();

describe('a lock inside of its own lock', () => {
  it('is reentrant without a request to Redis, also through unaware code; only the outermost exit deletes', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const deduct = () => locks.withLock(key, { waitMs: 0 }, ({ fencingToken }) => fencingToken);
    await locks.withLock(key, async (outer) => {
      const before = await lab.calls();
      const hold = (await lab.hold(key))!;
      expect(await deduct()).toBe(outer.fencingToken);
      await locks.withLock(key, async () => {
        expect(await deduct()).toBe(outer.fencingToken);
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
    await locks.withLock(key, { leaseMs: 60_000 }, async () => {
      await locks.withLock(key, { leaseMs: 1_000 }, async () => {
        expect((await lab.hold(key))!.leftMs).toBeGreaterThan(30_000);
      });
      expect((await lab.hold(key))!.leftMs).toBeGreaterThan(30_000);
    });
    expect(await lab.hold(key)).toBeNull();
  });

  it('reentrant: false rejects a nested call at once', async () => {
    const { locks } = lab.open({ reentrant: false });
    const key = newKey();
    const nested = locks.withLock(key, () => locks.withLock(key, { waitMs: 20_000 }, () => 'ran'));
    await expect(within(5_000, nested)).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT', key });
  });

  it('acquire() opens no section, lease.run() does', async () => {
    const { locks } = lab.open();
    await using lease = await locks.acquire(newKey());
    expect(await locks.tryAcquire(lease.key)).toBeNull();
    expect(() => currentLease()).toThrow(LockConfigurationError);
    await lease.run(async () => {
      expect(currentLease()).toBe(lease);
      await using again = (await locks.tryAcquire(lease.key))!;
      expect(again.fencingToken).toBe(lease.fencingToken);
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
    await here.locks.withLock(key, () =>
      there.locks.withLock(key, async () => {
        expect([await lab.hold(key), await elsewhere.hold(key)]).not.toContain(null);
        await here.locks.withLock(key, () => expect(there.locks.held()).toHaveLength(1));
      }),
    );
    expect(await elsewhere.hold(key)).toBeNull();
  });

  it('on another Redis, where it has a section of its own open: it is taken there all the same', async () => {
    await using elsewhere = await Lab.start();
    const [here, there] = [lab.open(), elsewhere.open()];
    const [key, another] = [newKey(), newKey()];
    await here.locks.withLock(key, () =>
      there.locks.withLock(another, () =>
        there.locks.withLock(key, async () => expect(await elsewhere.hold(key)).not.toBeNull()),
      ),
    );
  });

  it('on the same Redis in the same process: it is taken', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    await one.locks.withLock(key, async () => {
      expect(await two.locks.tryAcquire(key)).toBeNull();
    });
  });
});

describe('siblings inside a lock', () => {
  it('exclude each other, in the order in which they came', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const seen: string[] = [];
    await locks.withLock(key, () =>
      Promise.all(
        ['first', 'second', 'third'].map((name) =>
          locks.withLock(key, async () => {
            seen.push(`${name} in`);
            for (let i = 0; i < 5; i += 1) await lab.admin.ping();
            seen.push(`${name} out`);
          }),
        ),
      ),
    );
    expect(seen).toEqual(['first in', 'first out', 'second in', 'second out', 'third in', 'third out']);
  });

  it('wait for each other no longer than they said, and no longer than their caller wants', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const end = deferred();
    const caller = new AbortController();
    await locks.withLock(key, async () => {
      const first = locks.withLock(key, () => end.promise);
      const impatient = locks.withLock(key, { waitMs: 50 }, () => 'ran');
      const left = locks.withLock(key, { waitMs: 20_000, signal: caller.signal }, () => 'ran');
      await expect(impatient).rejects.toMatchObject({ code: 'LOCK_TAKEN', key });
      caller.abort();
      await expect(left).rejects.toMatchObject({ code: 'LOCK_ABORTED', key });
      end.resolve();
      await first;
      expect(await locks.withLock(key, () => 'ran')).toBe('ran');
    });
  });

  it('that are not awaited keep the lock until they are done', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const end = deferred();
    let outer = 'running';
    const whole = locks
      .withLock(key, () => void locks.withLock(key, () => end.promise))
      .then(() => (outer = 'ended'));
    await until(() => lab.hold(key));
    expect(await lab.open().locks.tryAcquire(key)).toBeNull();
    expect(outer).toBe('running');
    end.resolve();
    await whole;
    expect(await lab.hold(key)).toBeNull();
  });

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
      locks.withLock(key, () =>
        Promise.all([
          locks.withLock(key, visit),
          locks.withLock(newKey(), () => locks.withLock(key, visit)),
          locks.withLock(key, () => Promise.all([locks.withLock(key, visit), locks.withLock(key, visit)])),
        ]),
      );
    await Promise.all([family(one), family(two), family(one), family(two)]);
    expect(visits).toBe(16);
    await lab.nothingLeft(one, two);
  });
});

describe('what leaves a section', () => {
  it('does not by an event: its listener runs as a part of the section that emitted; in detached() it waits its turn', async () => {
    const { locks } = lab.open({ waitMs: 10_000 });
    const key = newKey();
    const bus = new EventEmitter();
    const diary: string[] = [];
    const handled: Promise<void>[] = [];
    const handle = () => locks.withLock(key, () => void diary.push('listener in'));
    bus.on('plain', () => handled.push(handle()));
    bus.on('detached', () => handled.push(detached(handle)));
    await locks.withLock(key, async () => {
      diary.push('writer in');
      bus.emit('plain');
      await handled[0];
      bus.emit('detached');
      await lab.waiting(key, 0);
      for (let i = 0; i < 5; i += 1) await lab.admin.ping();
      diary.push('writer out');
    });
    await Promise.all(handled);
    expect(diary).toEqual(['writer in', 'listener in', 'writer out', 'listener in']);
  });

  it('in detached() takes the lock for real, after its parent', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const tokens: number[] = [];
    const background = await locks.withLock(key, (outer) => {
      tokens.push(outer.fencingToken);
      return {
        done: detached(() => locks.withLock(key, (inner) => void tokens.push(inner.fencingToken))),
      };
    });
    expect(tokens).toHaveLength(1);
    await within(5_000, background.done);
    expect(tokens[1]).toBeGreaterThan(tokens[0]!);
  });

  it('by outliving its parent takes the lock for real', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const late = deferred();
    let fork: Promise<number> | undefined;
    const first = await one.locks.withLock(key, ({ fencingToken }) => {
      fork = late.promise.then(() => one.locks.withLock(key, (own) => own.fencingToken));
      return fencingToken;
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
