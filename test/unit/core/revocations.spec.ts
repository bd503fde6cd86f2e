import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LockEvents } from '../../../lib/core/report/lock-events.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { eventLoopTurn } from '../../support/stores/harness.js';
import { openLocksOn, type OpenLocksOn } from '../../support/stores/open-locks-on.js';

type Request = LockEvents['revocation-requested'];

describe('a holder that another client asks to release', () => {
  let holder: OpenLocksOn;
  let asker: OpenLocksOn;
  let events: Request[];

  beforeEach(() => {
    const store = new MemoryStore();
    holder = openLocksOn(store);
    asker = openLocksOn(new MemoryStore({ shared: store.space }));
    events = [];
    holder.locks.on('revocation-requested', (event) => void events.push(event));
  });
  afterEach(async () => {
    await holder[Symbol.asyncDispose]();
    await asker[Symbol.asyncDispose]();
  });

  const keysOf = (requests: readonly Request[]): string[] => requests.map(({ key }) => key);
  const ask = async (key: string): Promise<boolean> => {
    const isHeld = await asker.locks.revoke(key);
    await eventLoopTurn();
    return isHeld;
  };

  it('hears so by an event and a listener, once, and keeps its lock', async () => {
    const lease = await holder.locks.acquire('a');
    const heard: Request[] = [];
    lease.onRevocationRequested((request) => void heard.push(request));
    expect([await ask('a'), await ask('a')]).toEqual([true, true]);
    expect(keysOf(events)).toEqual(['a']);
    expect(heard).toEqual(events);
    expect(Number.isInteger(heard[0]!.heldMs)).toBe(true);
    expect([lease.signal.aborted, lease.lost, await lease.verify()]).toEqual([false, false, true]);
    expect(await lease.release()).toBe('released');
  });

  it('hears at once what came before it listened', async () => {
    const lease = await holder.locks.acquire('a');
    await ask('a');
    const heard: Request[] = [];
    lease.onRevocationRequested((request) => void heard.push(request));
    expect([keysOf(heard), events.length]).toEqual([['a'], 1]);
  });

  it('is no holder of a permit: its listener is refused by name', async () => {
    const permit = await holder.locks.permits('p', { permits: 1 }).acquire();
    expect(() => permit.onRevocationRequested(() => undefined)).toThrow(/permit of "p" cannot be asked/);
  });

  it('hears of each of its keys, and of no other', async () => {
    const lease = await holder.locks.acquire(['a', 'b']);
    await holder.locks.acquire('c');
    const heard: Request[] = [];
    lease.onRevocationRequested((request) => void heard.push(request));
    for (const key of ['b', 'c', 'a']) await ask(key);
    expect(keysOf(heard)).toEqual(['b', 'a']);
  });

  it('hears nothing after it has stopped to listen, or has released', async () => {
    const heard: Request[] = [];
    const lease = await holder.locks.acquire('a');
    const stop = lease.onRevocationRequested((request) => void heard.push(request));
    stop();
    await ask('a');
    await lease.release();
    await holder.locks.withLock('b', async (outer) => {
      await holder.locks.withLock('b', { inside: outer }, (inner) => {
        inner.onRevocationRequested((request) => void heard.push(request));
      });
      expect(outer.lost).toBe(false);
      await ask('b');
    });
    expect(heard).toEqual([]);
    expect(() => lease.onRevocationRequested(() => undefined)).toThrow('after the release');
  });

  it('does not pass the request on to the next holder', async () => {
    const first = await holder.locks.acquire('a');
    const second = holder.locks.acquire('a');
    await ask('a');
    await first.release();
    const heard: Request[] = [];
    (await second).onRevocationRequested((request) => void heard.push(request));
    expect(heard).toEqual([]);
    await ask('a');
    expect(keysOf(heard)).toEqual(['a']);
  });

  it('is not affected by an error of its listener, which is logged', async () => {
    const lease = await holder.locks.acquire('a');
    lease.onRevocationRequested(() => {
      throw new Error('full disk');
    });
    lease.onRevocationRequested(() => Promise.reject(new Error('late disk')) as never);
    await ask('a');
    expect(holder.log.join()).toMatch(/revocation-requested.*full disk.*late disk/s);
    expect(await lease.release()).toBe('released');
  });

  it('does not exist for a free key: the request resolves with false', async () => {
    expect(await ask('a')).toBe(false);
    const { release } = await holder.locks.acquire('a').then((lease) => ({ release: () => lease.release() }));
    await release();
    expect([await ask('a'), events]).toEqual([false, []]);
  });

  it('is refused by name on a store that cannot ask', async () => {
    const store = new MemoryStore();
    Object.assign(store, { name: 'Slate', revoke: undefined });
    await using slate = openLocksOn(store);
    const lease = await slate.locks.acquire('a');
    await expect(slate.locks.revoke('a')).rejects.toThrow('Slate cannot ask');
    expect(() => lease.onRevocationRequested(() => undefined)).toThrow('Slate cannot ask');
  });

  it('refuses a listener that is no function', async () => {
    const lease = await holder.locks.acquire('a');
    expect(() => lease.onRevocationRequested('now' as never)).toThrow('must be a function');
  });
});
