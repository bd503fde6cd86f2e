import { describe, expect, it } from 'vitest';
import type { LatchStore } from '../../../lib/core/seam/object-stores.js';
import { claimFor, expectGranted, newKey, type ContractContext } from '../../support/stores/harness.js';
import { ObjectWatch } from './object-watch.js';

/** What every store promises of countdown latches. */
export function describeLatches(context: ContractContext): void {
  const open = async (): Promise<LatchStore> => (await context.connect()).latches;
  /** Returns the key of a latch with this count. */
  const counting = async (count: number): Promise<[LatchStore, string]> => {
    const [store, key] = [await open(), newKey('latch')];
    expect(await store.set(key, count)).toBe(true);
    return [store, key];
  };

  describe('latches:', () => {
    it('a latch without a count is open, and a countdown leaves it open', async () => {
      const [store, key] = [await open(), newKey('latch')];
      expect(await store.count(key)).toBe(0);
      await store.countDown(key);
      expect(await store.count(key)).toBe(0);
      expect(await store.remove(key)).toBe(false);
      expect(await store.set(key, 1)).toBe(true);
      expect(await store.count(key)).toBe(1);
    });

    it('is counted down by whichever process', async () => {
      const [here, key] = await counting(3);
      const there = await open();
      await Promise.all([here.countDown(key), there.countDown(key)]);
      expect(await here.count(key)).toBe(1);
      await there.countDown(key);
      expect(await here.count(key)).toBe(0);
    });

    it('a second count is rejected until the first one is counted down', async () => {
      const [store, key] = await counting(1);
      expect(await store.set(key, 5)).toBe(false);
      await store.countDown(key);
      expect(await store.set(key, 5)).toBe(true);
      expect(await store.count(key)).toBe(5);
    });

    it('hints to each process that it is open, counted down or removed', async () => {
      const [here, key] = await counting(2);
      const there = await open();
      const watcher = await ObjectWatch.live((listener) => there.watch(key, listener));
      await here.countDown(key);
      await watcher.wokenBy(() => here.countDown(key));
      expect(await there.count(key)).toBe(0);
      await here.set(key, 7);
      await watcher.wokenBy(() => here.remove(key));
      expect(await there.count(key)).toBe(0);
      watcher.close();
    });

    it('a lock has no count, and a count is no lock: both are refused and stay', async () => {
      const store = await context.connect();
      const [locked, counted] = [newKey('lock'), newKey('latch')];
      const claim = claimFor(locked);
      expectGranted(await store.kinds.exclusive.acquire(claim));
      await store.latches.set(counted, 2);
      const { latches } = store;
      for (const request of [
        () => latches.set(locked, 1),
        () => latches.countDown(locked),
        () => latches.count(locked),
        () => latches.remove(locked),
        () => store.kinds.exclusive.acquire(claimFor(counted)),
      ]) {
        await expect(request()).rejects.toMatchObject({ outcome: 'not-executed', keyOnly: true });
      }
      expect((await store.kinds.exclusive.release(claim)).wasHeld).toBe(true);
      expect(await latches.count(counted)).toBe(2);
    });

    it('after the store was closed every question fails, and nothing was done', async () => {
      const store = await context.connect();
      const key = newKey('latch');
      await store.close();
      await expect(store.latches.count(key)).rejects.toMatchObject({ outcome: 'not-executed' });
    });
  });
}
