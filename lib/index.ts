export { RedisLockModule } from './redis-lock.module.js';
export type {
  LockInterceptorOptions,
  RedisLockModuleExtras,
  RedisLockModuleOptions,
} from './redis-lock.options.js';
export { InjectLockService, getLockServiceToken, type LockServiceToken } from './redis-lock.tokens.js';
export { LockService, type LockKeys } from './lock.service.js';
export type { Permits } from './permits.js';
export { withLocks, type LockOfService, type MultiSection } from './multi-lock/with-locks.js';
export type { MultiLease, PartOfLease } from './multi-lock/multi-lease.js';

export { Locked } from './locked/locked.decorator.js';
export { Limited } from './locked/limited.decorator.js';
export {
  LIMITED_METADATA,
  LOCKED_METADATA,
  type LimitedMetadata,
  type LockedMetadata,
} from './locked/locked.metadata.js';
export type {
  BusyFallback,
  DecoratorOptions,
  LimitedOptions,
  LockedOptions,
} from './locked/locked.options.js';
export type { KeyResult, Lockable, LockedDecorator } from './locked/locked.types.js';
export { lockKey } from './key/key-template.js';

export { currentLease, findLease } from './core/nesting/current-lease.js';
export { detached } from './detached.js';
export type { Lease } from './core/lease/lease.js';
export type {
  AcquireOptions,
  KeyWithMode,
  LockMode,
  PermitOptions,
  PermitSectionOptions,
  PermitsOptions,
  SectionOptions,
} from './core/settings/acquire-options.js';
export type { WaitOptions } from './core/settings/object-call.js';
export type { CountDownLatch } from './core/objects/count-down-latch.js';
export type { Semaphore } from './core/objects/semaphore.js';
export type { LockSettingsInput } from './core/settings/lock-settings.js';
export type { LockEventListener, LockEvents, LossReason } from './core/lock-events.js';
export type { Attempt, HeldLock, LockSection, LockUsage } from './core/lock-manager.js';

export {
  LockAbortedError,
  LockConfigurationError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockStoreError,
  type LockErrorCode,
} from './core/errors/lock.errors.js';

export { LockInterceptor } from './transport/lock.interceptor.js';
export { LockExceptionFilter } from './transport/lock-exception.filter.js';
export { LockHttpException } from './transport/lock-error-mapping.js';

// Stores, and the types for authors of stores.
export { StoreFailure, type StoreOutcome } from './core/seam/store-failure.js';
export { PlaceInLine, type Place, type PlaceOutcome } from './core/seam/place.js';
export type {
  AllKindStores,
  KindStore,
  KindStores,
  LockStore,
  ReleaseOptions,
  ServerTimes,
  Watch,
  WatchListener,
} from './core/seam/lock-store.js';
export type { LatchStore, SemaphoreStore } from './core/seam/object-stores.js';
export type { LockKind } from './core/kinds/kinds.js';
export type { Grant } from './core/seam/grant.js';
export type {
  Claim,
  ClaimOf,
  ExclusiveClaim,
  FairClaim,
  PermitClaim,
  ReadClaim,
  WriteClaim,
} from './core/seam/claim.js';
export type {
  AcquireReply,
  ExtendReply,
  HeldAs,
  Holder,
  KeyState,
  PermitState,
  PlaceReply,
  Queued,
  ReleaseReply,
  Taken,
} from './core/seam/reply.js';
export { QuorumStore, type QuorumStoreOptions } from './stores/quorum/quorum.store.js';
export { RedisStore, type RedisStoreOptions } from './stores/redis/redis.store.js';
export type { ReplicasOptions } from './stores/redis/replicas/replicas.js';
export type { CreateRedisClient } from './stores/redis/connection/redis-settings.js';
export type { ClusterLike, RedisClusterOptions } from './stores/redis/cluster/cluster-settings.js';
export type { RedisSource } from './stores/redis/topology-of.js';
export type { ConnectionRole, RedisLike } from './stores/redis/connection/redis-client.js';
