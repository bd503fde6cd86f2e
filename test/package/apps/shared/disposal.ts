import { LockService } from 'nest-redis-lock';

/** Whether the end of a block released the lock that was taken in it. */
export const disposes = async (locks: LockService): Promise<{ inside: boolean; after: boolean }> => {
  const insideBlock = async (): Promise<boolean> => {
    await using lease = await locks.acquire('report');
    return (await locks.isLocked('report')) && lease.remainingMs() > 0;
  };
  return { inside: await insideBlock(), after: await locks.isLocked('report') };
};
