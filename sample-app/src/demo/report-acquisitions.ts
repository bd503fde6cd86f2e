import type { LockService } from 'nest-redis-lock';
import { tell } from './part-process.js';

/** Tells the starting process of every lock that this instance gets to write. Permits and readers have no token. */
export const reportAcquisitions = async (locks: LockService): Promise<void> => {
  const owner = await ownerPrefix(locks);
  locks.on('acquired', ({ key, fencingToken: token }) => {
    if (token !== undefined) tell({ type: 'acquired', key, owner, token });
  });
};

/** How the names of this instance's holds begin in Redis, which are `<uuid>:<n>`; learned from one of them. */
const ownerPrefix = async (locks: LockService): Promise<string> => {
  const key = `instance:${process.pid}`;
  await using lease = await locks.acquire(key);
  const [hold] = (await locks.inspect(lease.key))?.holders ?? [];
  if (!hold) throw new Error(`Redis does not know the lock "${key}" that was just taken.`);
  return hold.owner.slice(0, hold.owner.lastIndexOf(':') + 1);
};
