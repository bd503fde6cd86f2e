import type { LockService } from 'nest-redis-lock';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';

/** A bound instance on a memory store, and its service. No patience, so that a taken lock is answered at once. */
export const lockedInstance = <T extends object>(
  type: new () => T,
  waitMs = 0,
): { instance: T; locks: LockService } => {
  const locks = createTestingLocks('memory', { waitMs });
  return { instance: bindLocks(new type(), locks), locks };
};

/** Whether this service, and everybody on its store, is done with everything. */
export const isIdle = (locks: LockService): boolean => Object.values(locks.usage).every((size) => size === 0);
