export { RedisLockTestingModule, type RedisLockTestingOptions } from './redis-lock-testing.module.js';
export { bindLocks, createTestingLocks } from './testing-locks.js';
export { MemoryStore, type MemoryStoreOptions } from '../stores/memory/memory.store.js';
export { MemorySpace, type MemorySpaceOptions } from '../stores/memory/memory-space.js';
