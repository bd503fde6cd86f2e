export { RedisLockTestingModule } from '../testing/redis-lock-testing.module.js';
export type {
  RedisLockTestingAsyncOptions,
  RedisLockTestingOptions,
  TestingMode,
  TestingSettings,
} from '../testing/testing-options.js';
export { LockTesting, TestingLockService } from '../testing/testing-lock.service.js';
export type { OutsideHoldOptions } from '../testing/outside-process.js';
export type { LoseEverywhereOptions, WritingMethods } from '../testing/lose-everywhere.js';
export { LossReport, type UnfencedWrite } from '../testing/loss-report.js';
export type { UnfencedReason } from '../testing/connection-state.js';
export { bindLocks, createTestingLocks } from '../testing/testing-locks.js';
export { MemoryStore, type MemoryStoreOptions } from '../stores/memory/memory.store.js';
export { MemorySpace, type MemorySpaceOptions } from '../stores/memory/memory-space.js';
