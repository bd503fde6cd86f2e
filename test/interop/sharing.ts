import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';

/** Has a permit, and gives back what releases it. */
type Take = () => Promise<() => Promise<unknown>>;

/** A caller that has a permit so often, and counts itself in and out: the most that were inside at once. */
const shares = async (take: Take, redis: Redis, counter: string, rounds: number): Promise<number> => {
  let max = 0;
  for (let round = 0; round < rounds; round += 1) {
    const release = await take();
    max = Math.max(max, await redis.incr(counter));
    await sleep(1);
    await redis.decr(counter);
    await release();
  }
  return max;
};

/** Runs `callers` of them. Returns for each the largest number that it saw inside. */
export const nodeShares = (
  take: Take,
  redis: Redis,
  { counter, callers, rounds }: { counter: string; callers: number; rounds: number },
): Promise<number[]> =>
  Promise.all(Array.from({ length: callers }, () => shares(take, redis, counter, rounds)));
