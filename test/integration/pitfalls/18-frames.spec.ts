import { EventEmitter } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { detached } from 'nest-redis-lock';
import { deferred, until } from '../../support/async.js';
import { collectGarbage } from '../../support/garbage.js';
import { Lab, newKey } from '../../support/redis/lab.js';

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

/** The rest of the core's frames are in test/unit/core/frames.spec.ts; these are what needs a real Redis. */
describe('pitfall 18: sections', () => {
  it('of siblings exclude each other, over nested ones and over processes', async () => {
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

  it('an event listener runs as a part of the section that emitted; in detached() it waits its turn', async () => {
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

  it('a fork that starts after its parent ended takes the lock for real', async () => {
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

  it('that start themselves anew keep nothing of those before: 2,000 in a row', async () => {
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
