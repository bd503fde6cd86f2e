export { RedisLockTestingModule } from './redis-lock-testing.module.js';
export type {
  RedisLockTestingAsyncOptions,
  RedisLockTestingOptions,
  TestingMode,
  TestingSettings,
} from './testing-options.js';
export { LockTesting, TestingLockService } from './testing-lock.service.js';
export type { OutsideHoldOptions } from './outside-process.js';
export type { LoseEverywhereOptions, WritingMethods } from './lose-everywhere.js';
export { LossReport, type UnfencedWrite } from './loss-report.js';
export type { UnfencedReason } from './connection-state.js';
export { bindLocks, createTestingLocks } from './testing-locks.js';
export { MemoryStore, type MemoryStoreOptions } from '../stores/memory/memory.store.js';
export { MemorySpace, type MemorySpaceOptions } from '../stores/memory/memory-space.js';
