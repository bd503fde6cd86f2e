export { RedisLockModule, RedisLockModule as LockModule } from './nest/module/redis-lock.module.js';
export type {
  LockInterceptorOptions,
  RedisLockModuleExtras,
  RedisLockModuleOptions,
} from './nest/module/redis-lock.options.js';
export {
  InjectLockService,
  getLockServiceToken,
  type LockServiceToken,
} from './nest/module/redis-lock.tokens.js';
export { LockHealthIndicator, type LockHealth } from './nest/module/lock-health-indicator.js';
export { LockService, type LockKeys } from './nest/service/lock.service.js';
export {
  createLockService,
  type LockServiceOptions,
  type StandaloneLockService,
} from './nest/service/create-lock-service.js';
export type { Permits } from './nest/service/permits.js';
export { withLocks, type LockOfService, type MultiSection } from './nest/service/with-locks.js';
export type { MultiLease, PartOfLease } from './nest/service/multi-lease.js';
export { runOrDelay, type DelayableJob, type RunOrDelayOptions } from './nest/service/run-or-delay.js';

export { Locked } from './nest/locked/locked.decorator.js';
export { Limited } from './nest/locked/limited.decorator.js';
export {
  LIMITED_METADATA,
  LOCKED_METADATA,
  type LimitedMetadata,
  type LockedMetadata,
} from './nest/locked/locked.metadata.js';
export type {
  BusyFallback,
  DecoratorOptions,
  LimitedOptions,
  LockedOptions,
  VaryingOptions,
} from './nest/locked/locked.options.js';
export type { KeyResult, Lockable, LockedDecorator } from './nest/locked/locked.types.js';
export { Leader, type LeaderDecorator } from './nest/leader/leader.decorator.js';
export type { Candidate, LeaderFunction } from './nest/leader/candidate.js';
export type { Leadership } from './nest/leader/leadership.js';
export type { LeaderOptions, LeadOptions } from './nest/leader/leader.options.js';
export { lockKey } from './key/key-template.js';

export { currentLease, findLease } from './core/nesting/current-lease.js';
export { detached } from './core/nesting/section.js';
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
export type {
  LeadershipEnd,
  LockEvent,
  LockEventListener,
  LockEvents,
  LossReason,
} from './core/report/lock-events.js';
export type {
  LockAcquireMessage,
  LockHoldMessage,
  LockSectionMessage,
  LockStoreMessage,
} from './core/context/telemetry.js';
export type { HeldLock, LockUsage } from './core/service/held-locks.js';
export type { Attempt, LockSection } from './core/service/lock-manager.js';
export type { ListedLock, ListOptions, LockList } from './core/service/listing.js';

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

export { LockExceptionFilter } from './nest/transport/lock-exception.filter.js';
export { LockHttpException } from './nest/transport/lock-error-mapping.js';

export type { LockKind } from './core/kinds/kinds.js';
export type { InspectedHolder, InspectedKey } from './core/holders/holders.js';
export type { LockHolder } from './core/seam/process-record.js';
export type { HeldAs, Holder, KeyState, PermitState } from './core/seam/reply.js';
export type { ForeignHold } from './core/settings/foreign-hold.js';
