import type { FullStore, MakeHarness } from './harness.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { memoryHarness } from './memory.harness.js';
import { redisHarness } from './redis.harness.js';

/** A store under contract. */
export interface StoreUnderContract {
  readonly name: string;
  /** Its folder under lib/stores. */
  readonly folder: string;
  readonly makeHarness: MakeHarness;
  /** Makes a store as an app would, on the server at the harness's address. */
  readonly open: (address?: string) => FullStore;
}

/** Every store of the library; contract.spec.ts fails for one that is missing here. */
export const STORES: readonly StoreUnderContract[] = [
  { name: 'MemoryStore', folder: 'memory', makeHarness: memoryHarness, open: () => new MemoryStore() },
  {
    name: 'RedisStore',
    folder: 'redis',
    makeHarness: redisHarness,
    open: (address = '') => new RedisStore({ redis: address }),
  },
];
