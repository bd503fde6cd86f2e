// Compiled and never run: what one build makes fits where the other one asks for it.
import { BillingService, type lib as cjs } from 'billing';
import type * as esm from 'nest-redis-lock';
import type { RedisStore } from 'nest-redis-lock/redis';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';

export const service = (billing: BillingService): esm.LockService => billing.locks;
export const lease = (ours: esm.Lease): cjs.Lease => ours;
export const store = (ours: RedisStore): cjs.RedisLockModuleOptions => ({ store: ours });
export const byHand = (): BillingService => {
  const locks = createTestingLocks();
  return bindLocks(new BillingService(locks), locks);
};

// @ts-expect-error which would also be so if it were all `any`
export const wrong = (ours: esm.Lease): cjs.LockService => ours;
