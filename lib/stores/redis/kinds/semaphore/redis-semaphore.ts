import type { SemaphoreStore } from '../../../../core/seam/object-stores.js';
import { RedisFailure } from '../../connection/redis-failure.js';
import type { RedisSession } from '../../connection/redis-session.js';
import { Script, requestFor } from '../../connection/script.js';
import { NUMBERS, readDone, readNumber, readVoid } from '../numbers.js';
import { RedisNumbers } from '../redis-numbers.js';

/**
 * The scripts of counting semaphores, in the layout of Redisson's RSemaphore: a string with the number of free permits.
 * Each increase is announced with the new number, because Java's waiters look at nothing else. A time to live that Java
 * has set stays.
 */

/** Limits of the number: Java's largest number of permits, and the same below zero. */
const BOUNDS = `
local function bounded(n)
  if n > 2147483647 or n < -2147483647 then
    return redis.error_reply('PERMITS it would have ' .. whole(n) .. ' permits, and 2147483647 is the limit')
  end
end
`;

/**
 * Acquires permits, all or none.
 *
 * KEYS[1] number
 * ARGV[1] permits
 * Reply: integer  1 when it acquired them, else 0
 *        error WRONGTYPE when the value is no number
 */
export const SEMAPHORE_TAKE = new Script(`${NUMBERS}
if not number or number < tonumber(ARGV[1]) then return 0 end
redis.call('incrby', KEYS[1], '-' .. ARGV[1])
return 1
`);

/**
 * Increases or decreases the number, and announces it. Works when the memory is full, if the number exists.
 *
 * KEYS[1] number
 * ARGV[1] permits, below zero for fewer  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH
 * Reply: integer  1
 *        error PERMITS when the number would exceed a limit, WRONGTYPE when the value is no number
 */
export const SEMAPHORE_ADD = new Script(
  `${NUMBERS}${BOUNDS}
local sum = (number or 0) + tonumber(ARGV[1])
local refusal = bounded(sum)
if refusal then return refusal end
redis.call(ARGV[3], ARGV[2], whole(sum))
touch()
redis.call('incrby', KEYS[1], ARGV[1])
return 1
`,
  [{ word: 'PERMITS', plain: true, keyOnly: true, claimOnly: true }],
);

/**
 * Sets the number if there is none, and announces it.
 *
 * KEYS[1] number
 * ARGV[1] permits  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH
 * Reply: integer  1 when it set it, else 0
 *        error WRONGTYPE when the value is no number
 */
const SEMAPHORE_SET = new Script(`${NUMBERS}
if number then return 0 end
redis.call(ARGV[3], ARGV[2], ARGV[1])
redis.call('set', KEYS[1], ARGV[1])
return 1
`);

/**
 * Returns the number.
 *
 * KEYS[1] number
 * Reply: text  the number, 0 for none
 *        error WRONGTYPE when the value is no number
 */
const SEMAPHORE_FREE = new Script(`${NUMBERS}
return text or '0'
`);

/**
 * Acquires all free permits. A number below zero becomes zero; that is not announced, because no permit becomes free.
 *
 * KEYS[1] number
 * Reply: text  the number before, 0 for none
 *        error WRONGTYPE when the value is no number
 */
const SEMAPHORE_DRAIN = new Script(`${NUMBERS}
if not number or number == 0 then return '0' end
touch()
redis.call('incrby', KEYS[1], whole(-number))
return text
`);

/**
 * Deletes the number. No permit becomes free, so nothing is announced.
 *
 * KEYS[1] number
 * Reply: integer  1 when there was one, else 0
 *        error WRONGTYPE when the value is no number
 */
const SEMAPHORE_REMOVE = new Script(`${NUMBERS}
if not number then return 0 end
redis.call('del', KEYS[1])
return 1
`);

export const SEMAPHORE_SCRIPTS: readonly Script[] = [
  SEMAPHORE_TAKE,
  SEMAPHORE_ADD,
  SEMAPHORE_SET,
  SEMAPHORE_FREE,
  SEMAPHORE_DRAIN,
  SEMAPHORE_REMOVE,
];

/** Counting semaphores in Redis, as Redisson's RSemaphore. */
export class RedisSemaphores extends RedisNumbers implements SemaphoreStore {
  take(finalKey: string, permits: number): Promise<boolean> {
    return this.run(SEMAPHORE_TAKE, finalKey, [permits], readDone);
  }

  set(finalKey: string, permits: number): Promise<boolean> {
    return this.run(SEMAPHORE_SET, finalKey, [permits, ...this.announcing(finalKey)], readDone);
  }

  add(finalKey: string, permits: number): Promise<void> {
    return this.run(SEMAPHORE_ADD, finalKey, [permits, ...this.announcing(finalKey)], readVoid);
  }

  /** Releases permits on the session that acquired them. A later one may lead to a server that lacks the acquire. */
  async returnPermits(session: RedisSession, finalKey: string, permits: number): Promise<void> {
    const { topology, keys } = this.link;
    const connection = topology.connectionOf(session);
    if (!connection) throw new RedisFailure('the connection to Redis was lost', 'not-executed', {});
    const args = [permits, ...this.announcing(finalKey)];
    await connection.sendOnlyOn(session, requestFor(SEMAPHORE_ADD, [keys.name(finalKey)], args, readVoid));
  }

  free(finalKey: string): Promise<number> {
    return this.run(SEMAPHORE_FREE, finalKey, [], readNumber);
  }

  drain(finalKey: string): Promise<number> {
    return this.run(SEMAPHORE_DRAIN, finalKey, [], readNumber);
  }

  remove(finalKey: string): Promise<boolean> {
    return this.run(SEMAPHORE_REMOVE, finalKey, [], readDone);
  }

  protected override channel(finalKey: string): string {
    const { keys } = this.link;
    return keys.permitChannel(keys.name(finalKey));
  }
}
