import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { QuorumStore } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { storeHost } from './store-host.js';
import type { FullStore, StoreHarness } from './harness.js';

/** How far apart the clocks of the nodes are, in µs: each gives other tokens. */
const APART_MICROS = 100_000;

/** A quorum of three nodes in memory, on a clock that moves only when a test says so. */
export function quorumHarness(): Promise<StoreHarness> {
  let now = 1_000;
  const spaces = [0, 1, 2].map(
    (i) =>
      new MemorySpace({
        now: () => now,
        wallClockMicros: () => Date.now() * 1_000 + i * APART_MICROS,
      }),
  );
  const runtime = { ...systemRuntime(), now: () => now };
  return Promise.resolve({
    virtualTime: true,
    entriesExpire: false,
    connect: () => {
      const nodes = spaces.map((space) => new MemoryStore({ shared: space }));
      const store = new QuorumStore({ nodes, runtime });
      return store.open(storeHost({ runtime })).then(() => store as unknown as FullStore);
    },
    pass: (ms) => {
      now += ms;
      return Promise.resolve();
    },
    leftovers: () => {
      const sizes = spaces.map(({ size }) => size);
      return Promise.resolve({
        holds: sizes.reduce((sum, { holds }) => sum + holds, 0),
        // One is a watch at each node.
        watches: Math.max(...sizes.map(({ watches }) => watches)),
        grantSubscriptions: 0,
      });
    },
    cleanup: () => Promise.resolve(),
  });
}
