export { RedisLockModule, RedisLockModule as LockModule } from './redis-lock.module.js';
export type {
  LockInterceptorOptions,
  RedisLockModuleExtras,
  RedisLockModuleOptions,
} from './redis-lock.options.js';
export { InjectLockService, getLockServiceToken, type LockServiceToken } from './redis-lock.tokens.js';
export { LockHealthIndicator, type LockHealth } from './lock-health-indicator.js';
export { LockService, type LockKeys } from './lock.service.js';
export {
  createLockService,
  type LockServiceOptions,
  type StandaloneLockService,
} from './create-lock-service.js';
export type { Permits } from './permits.js';
export { withLocks, type LockOfService, type MultiSection } from './multi-lock/with-locks.js';
export type { MultiLease, PartOfLease } from './multi-lock/multi-lease.js';
export { runOrDelay, type DelayableJob, type RunOrDelayOptions } from './run-or-delay.js';

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
  VaryingOptions,
} from './locked/locked.options.js';
export type { KeyResult, Lockable, LockedDecorator } from './locked/locked.types.js';
export { Leader, type LeaderDecorator } from './leader/leader.decorator.js';
export type { Candidate, LeaderFunction } from './leader/candidate.js';
export type { Leadership } from './leader/leadership.js';
export type { LeaderOptions, LeadOptions } from './leader/leader.options.js';
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
} from './core/lock-events.js';
export type {
  LockAcquireMessage,
  LockHoldMessage,
  LockSectionMessage,
  LockStoreMessage,
} from './core/telemetry.js';
export type { HeldLock, LockUsage } from './core/held-locks.js';
export type { Attempt, LockSection } from './core/lock-manager.js';
export type { ListedLock, ListOptions, LockList } from './core/listing.js';

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

export { LockExceptionFilter } from './transport/lock-exception.filter.js';
export { LockHttpException } from './transport/lock-error-mapping.js';

export type { LockKind } from './core/kinds/kinds.js';
export type { InspectedHolder, InspectedKey } from './core/holders/holders.js';
export type { LockHolder } from './core/holders/process-record.js';
export type { HeldAs, Holder, KeyState, PermitState } from './core/seam/reply.js';
export type { ForeignHold } from './core/settings/foreign-hold.js';
