import { createTestingLocks } from 'nest-redis-lock/testing';
import type { Lease, LockService } from 'nest-redis-lock';

/** Creates a lock service whose leases have tokens. */
export const newLocks = (): LockService => createTestingLocks();

let keys = 0;
export const newKey = (): string => `order:${(keys += 1)}`;

/** Takes the same keys twice: an operator unlocks them, and the first holder does not learn of it. */
export const twoHolders = async (...wanted: readonly string[]): Promise<[earlier: Lease, later: Lease]> => {
  const names = wanted.length > 0 ? wanted : [newKey()];
  const locks = newLocks();
  const earlier = await locks.acquire(names);
  for (const name of names) await locks.forceUnlock(name);
  return [earlier, await locks.acquire(names)];
};
