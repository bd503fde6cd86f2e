import type {
  AcquireOptions,
  LimitedOptions,
  ListOptions,
  LockedOptions,
  LockInterceptorOptions,
  PermitSectionOptions,
  PermitsOptions,
  RedisLockModuleOptions,
  SectionOptions,
  WaitOptions,
} from 'nest-redis-lock';
import type { FencingOptions, SweepOptions } from 'nest-redis-lock/fencing';
import type { MysqlStoreOptions } from 'nest-redis-lock/mysql';
import type { PostgresStoreOptions } from 'nest-redis-lock/postgres';
import type { QuorumStoreOptions, RedisStoreOptions, ReplicasOptions } from 'nest-redis-lock/redis';
import type {
  LoseEverywhereOptions,
  MemorySpaceOptions,
  OutsideHoldOptions,
  RedisLockTestingOptions,
} from 'nest-redis-lock/testing';
import type { ZooKeeperStoreOptions } from 'nest-redis-lock/zookeeper';

/** Names of the optional properties that refuse `undefined`. */
type Refusing<T> = {
  [K in keyof T]-?: object extends Pick<T, K>
    ? { [P in K]: undefined } extends Pick<T, K>
      ? never
      : K
    : never;
}[keyof T];

/** Compiles if each option takes `undefined`, which keeps its default. */
declare const takesUndefined: <T>(...refusing: [Refusing<T>] extends [never] ? [] : [Refusing<T>]) => void;

takesUndefined<AcquireOptions>();
takesUndefined<FencingOptions>();
takesUndefined<LimitedOptions>();
takesUndefined<ListOptions>();
takesUndefined<LockedOptions>();
takesUndefined<LockInterceptorOptions>();
takesUndefined<LoseEverywhereOptions>();
takesUndefined<MemorySpaceOptions>();
takesUndefined<MysqlStoreOptions>();
takesUndefined<OutsideHoldOptions>();
takesUndefined<PermitSectionOptions>();
takesUndefined<PermitsOptions>();
takesUndefined<PostgresStoreOptions>();
takesUndefined<QuorumStoreOptions>();
takesUndefined<RedisLockModuleOptions>();
takesUndefined<RedisLockTestingOptions>();
takesUndefined<RedisStoreOptions>();
takesUndefined<ReplicasOptions>();
takesUndefined<SectionOptions>();
takesUndefined<SweepOptions>();
takesUndefined<WaitOptions>();
takesUndefined<ZooKeeperStoreOptions>();
