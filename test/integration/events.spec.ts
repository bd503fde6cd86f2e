import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { Lab, newKey, useLab } from '../support/redis/lab.js';

const lab = useLab();

describe('events', () => {
  it('report the life of a lock: the key as the caller wrote it, times in ms, the token', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await one.locks.acquire(key);
    await two.locks.tryAcquire(key, { waitMs: 60 });
    await lease.release();
    const ms = expect.any(Number) as number;
    expect(one.events('acquired')).toEqual([
      { ...{ key, kind: 'exclusive', label: 'acquire' }, waitedMs: ms, fencingToken: lease.fencingToken },
    ]);
    expect(one.events('released')).toEqual([
      { ...{ key, kind: 'exclusive', label: 'acquire' }, heldMs: ms, confirmed: true },
    ]);
    expect(one.events('released')[0]!.heldMs).toBeGreaterThanOrEqual(59);
    expect(two.events('busy')).toEqual([
      { ...{ key, kind: 'exclusive', label: 'tryAcquire' }, waitedMs: ms, waitersAhead: 0 },
    ]);
    expect(two.events('busy')[0]!.waitedMs).toBeGreaterThanOrEqual(59);
    expect([...two.events('acquired'), ...one.events('lost'), ...one.events('store-down')]).toEqual([]);
  });

  it('are for grants in the store: one for each key, none for nested calls', async () => {
    const { locks, events } = lab.open();
    const [a, b] = [newKey(), newKey()];
    await locks.withLock([a, b], (inside) => locks.withLock(a, { inside }, () => undefined));
    expect(events('acquired').map(({ key }) => key)).toEqual([a, b]);
    expect(
      events('released')
        .map(({ key }) => key)
        .sort(),
    ).toEqual([a, b].sort());
  });

  it('on() returns a function that removes the listener, and each registration is separate', async () => {
    const { locks } = lab.open();
    const received: string[] = [];
    const listener = ({ key }: { key: string }) => void received.push(key);
    const [offOne, offTwo] = [locks.on('acquired', listener), locks.on('acquired', listener)];
    const key = newKey();
    await locks.withLock(key, () => undefined);
    offOne();
    offOne();
    await locks.withLock(key, () => undefined);
    offTwo();
    await locks.withLock(key, () => undefined);
    expect(received).toEqual([key, key, key]);
  });

  it('a listener that throws harms neither the lock nor its holder', async () => {
    const { locks, log } = lab.open();
    for (const event of ['acquired', 'released'] as const) {
      locks.on(event, () => {
        throw new Error('a broken listener');
      });
    }
    expect(await locks.withLock(newKey(), () => 'done')).toBe('done');
    expect(log.filter((line) => line.includes('a broken listener'))).toHaveLength(2);
  });

  it('one store-down and one store-up for each outage, however many calls meet it', async () => {
    await using own = await Lab.start();
    const { locks, events, log } = own.open({ commandTimeoutMs: 200 });
    for (let outage = 1; outage <= 2; outage += 1) {
      await own.server.kill('SIGKILL');
      await Promise.allSettled(Array.from({ length: 10 }, (_, i) => locks.acquire(`key-${i}`)));
      await Promise.allSettled([locks.ping(), locks.inspect('key-1')]);
      await own.server.restart();
      await until(() => locks.ping().then(() => true));
      expect([events('store-down').length, events('store-up').length]).toEqual([outage, outage]);
    }
    expect(log).toHaveLength(4);
    expect(events('busy')).toEqual([]);
  });
});
