import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import type { StoreHarness } from './harness.js';

/** The memory store on a clock that moves only when a test says so. */
export function memoryHarness(): Promise<StoreHarness> {
  let now = 1_000;
  const space = new MemorySpace({ now: () => now });
  return Promise.resolve({
    virtualTime: true,
    entriesExpire: false,
    connect: () => Promise.resolve(new MemoryStore({ shared: space })),
    pass: (ms) => {
      now += ms;
      return Promise.resolve();
    },
    leftovers: () => Promise.resolve({ ...space.size, grantSubscriptions: 0 }),
    cleanup: () => Promise.resolve(),
  });
}
