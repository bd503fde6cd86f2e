import type { LockService } from 'nest-redis-lock';
import { clock } from './live/ids.js';
import { report } from './part-process.js';

/**
 * Reports every write lock that this instance acquires to the starting process. Permits and read locks have no token.
 */
export const reportAcquisitions = async (locks: LockService): Promise<void> => {
  const owner = await ownerPrefix(locks);
  locks.on('acquired', ({ key, fencingToken: token }) => {
    if (token !== undefined) report({ type: 'acquired', key, owner, token, at: clock() });
  });
};

/**
 * Resolves with the prefix of this instance's owners in the store, which are `<uuid>:<n>`. It learns it from one of them.
 */
const ownerPrefix = async (locks: LockService): Promise<string> => {
  const key = `instance:${process.pid}`;
  await using lease = await locks.acquire(key);
  const [hold] = (await locks.inspect(lease.key))?.holders ?? [];
  if (!hold) throw new Error(`The store does not know the lock "${key}" that was just taken.`);
  return hold.owner.slice(0, hold.owner.lastIndexOf(':') + 1);
};
