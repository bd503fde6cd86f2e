import { describe, expect, it } from 'vitest';
import type { SemaphoreStore } from '../../../lib/core/seam/object-stores.js';
import { claimFor, expectGranted, newKey, type ContractContext } from '../../support/stores/harness.js';
import { ObjectWatch } from './object-watch.js';

const MAX = 2 ** 31 - 1;

/** What every store promises of counting semaphores. */
export function describeSemaphores(context: ContractContext): void {
  const open = async (): Promise<SemaphoreStore> => (await context.connect()).semaphores;
  /** Returns the key of a semaphore with this number of permits. */
  const having = async (permits: number): Promise<[SemaphoreStore, string]> => {
    const [store, key] = [await open(), newKey('semaphore')];
    expect(await store.set(key, permits)).toBe(true);
    return [store, key];
  };

  describe('semaphores:', () => {
    it('there are no permits until a caller sets a number', async () => {
      const [store, key] = [await open(), newKey('semaphore')];
      expect(await store.free(key)).toBe(0);
      expect(await store.take(key, 1)).toBe(false);
      expect(await store.drain(key)).toBe(0);
      expect(await store.remove(key)).toBe(false);
    });

    it('as many are taken as there are, over all processes', async () => {
      const [here, key] = await having(3);
      const there = await open();
      const took = await Promise.all([here, there, here, there].map((store) => store.take(key, 1)));
      expect(took.filter(Boolean)).toHaveLength(3);
      expect(await there.free(key)).toBe(0);
    });

    it('a request for several permits takes all of them or none', async () => {
      const [store, key] = await having(3);
      expect(await store.take(key, 2)).toBe(true);
      expect(await store.take(key, 2)).toBe(false);
      expect(await store.free(key)).toBe(1);
      expect(await store.take(key, 1)).toBe(true);
    });

    it('a permit that another process releases is free again', async () => {
      const [here, key] = await having(1);
      const there = await open();
      expect(await here.take(key, 1)).toBe(true);
      await there.add(key, 1);
      expect(await there.take(key, 1)).toBe(true);
    });

    it('a release where no number is set sets the number', async () => {
      const [store, key] = [await open(), newKey('semaphore')];
      await store.add(key, 2);
      expect(await store.free(key)).toBe(2);
      expect(await store.set(key, 5)).toBe(false);
      expect(await store.free(key)).toBe(2);
    });

    it('the number is set once, and counts as set at zero', async () => {
      const [store, key] = await having(1);
      expect(await store.take(key, 1)).toBe(true);
      expect(await store.set(key, 9)).toBe(false);
      expect(await store.free(key)).toBe(0);
    });

    it('below zero permits, a caller gets one only after enough releases', async () => {
      const [store, key] = await having(1);
      await store.add(key, -3);
      expect(await store.free(key)).toBe(-2);
      await store.add(key, 2);
      expect(await store.take(key, 1)).toBe(false);
      await store.add(key, 1);
      expect(await store.take(key, 1)).toBe(true);
    });

    it('a drain takes all permits, returns their number, and raises a negative number to zero', async () => {
      const [store, key] = await having(4);
      expect(await store.drain(key)).toBe(4);
      expect(await store.free(key)).toBe(0);
      await store.add(key, -2);
      expect(await store.drain(key)).toBe(-2);
      expect(await store.free(key)).toBe(0);
    });

    it('once removed it has no number', async () => {
      const [store, key] = await having(4);
      expect(await store.remove(key)).toBe(true);
      expect(await store.take(key, 1)).toBe(false);
      expect(await store.set(key, 1)).toBe(true);
    });

    it('there are never more than Java can count, and what would make them so changes nothing', async () => {
      const [store, key] = await having(MAX);
      await expect(store.add(key, 1)).rejects.toMatchObject({ outcome: 'not-executed', keyOnly: true });
      expect(await store.free(key)).toBe(MAX);
      await store.drain(key);
      await store.add(key, -MAX);
      await expect(store.add(key, -1)).rejects.toMatchObject({ outcome: 'not-executed' });
      expect(await store.free(key)).toBe(-MAX);
    });

    it('whatever makes the number greater is hinted to each process', async () => {
      const key = newKey('semaphore');
      const [here, there] = [await open(), await open()];
      const near = await ObjectWatch.live((listener) => here.watch(key, listener));
      const far = await ObjectWatch.live((listener) => there.watch(key, listener));
      for (const change of [() => here.set(key, 1), () => here.add(key, 1)]) {
        await near.wokenBy(() => far.wokenBy(change));
      }
      near.close();
      far.close();
    });

    it('a lock has no number, and a number is no lock: both are refused and stay', async () => {
      const store = await context.connect();
      const [locked, counted] = [newKey('lock'), newKey('semaphore')];
      const claim = claimFor(locked);
      expectGranted(await store.kinds.exclusive.acquire(claim));
      await store.semaphores.set(counted, 2);
      const refusal = { outcome: 'not-executed', keyOnly: true };
      const { semaphores } = store;
      for (const request of [
        () => semaphores.take(locked, 1),
        () => semaphores.add(locked, 1),
        () => semaphores.set(locked, 1),
        () => semaphores.free(locked),
        () => semaphores.drain(locked),
        () => semaphores.remove(locked),
        () => store.kinds.exclusive.acquire(claimFor(counted)),
      ]) {
        await expect(request()).rejects.toMatchObject(refusal);
      }
      expect((await store.kinds.exclusive.release(claim)).wasHeld).toBe(true);
      expect(await semaphores.free(counted)).toBe(2);
    });

    it('after the store was closed every question fails, and nothing was done', async () => {
      const store = await context.connect();
      const key = newKey('semaphore');
      await store.close();
      await expect(store.semaphores.take(key, 1)).rejects.toMatchObject({ outcome: 'not-executed' });
    });
  });
}
