import { NUMBERS } from '../numbers.js';

/**
 * The scripts of countdown latches, in the layout of Redisson's RCountDownLatch: a string with the remaining count,
 * which does not exist at zero. The message `0` opens the gate at which threads of Java wait, and `1` closes it.
 */

/**
 * Sets the count if there is none, and closes Java's gates.
 *
 * KEYS[1] number
 * ARGV[1] count  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH
 * Reply: integer  1 when it set it, else 0
 *        error WRONGTYPE when the value is no number
 */
export const LATCH_SET = `${NUMBERS}
if number then return 0 end
redis.call(ARGV[3], ARGV[2], '1')
redis.call('set', KEYS[1], ARGV[1])
return 1
`;

/**
 * Reduces the count by one. At zero it deletes the count and notifies waiters. Works when the memory is full.
 *
 * KEYS[1] number
 * ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1
 *        error WRONGTYPE when the value is no number
 */
export const LATCH_COUNT_DOWN = `${NUMBERS}
if not number then return 1 end
if number > 1 then
  touch()
  redis.call('incrby', KEYS[1], -1)
else
  redis.call(ARGV[2], ARGV[1], '0')
  redis.call('del', KEYS[1])
end
return 1
`;

/**
 * Returns the count.
 *
 * KEYS[1] number
 * Reply: text  the number, 0 for none
 *        error WRONGTYPE when the value is no number
 */
export const LATCH_COUNT = `${NUMBERS}
return text or '0'
`;

/**
 * Deletes the count, which opens the latch. Redisson's own delete announces `1`, which leaves its waiters asleep. This
 * script announces `0`, which is correct and wakes them.
 *
 * KEYS[1] number
 * ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1 when there was one, else 0
 *        error WRONGTYPE when the value is no number
 */
export const LATCH_REMOVE = `${NUMBERS}
if not number then return 0 end
redis.call(ARGV[2], ARGV[1], '0')
redis.call('del', KEYS[1])
return 1
`;
