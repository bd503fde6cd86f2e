import type { LatchStore } from '../../../../core/seam/object-stores.js';
import { RedisFailure } from '../../connection/redis-failure.js';
import { hashSlot } from '../../hash-slot.js';
import { Script } from '../../connection/script.js';
import { NUMBERS, readDone, readNumber, readVoid } from '../numbers.js';
import { RedisNumbers } from '../redis-numbers.js';

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
const LATCH_SET = new Script(`${NUMBERS}
if number then return 0 end
redis.call(ARGV[3], ARGV[2], '1')
redis.call('set', KEYS[1], ARGV[1])
return 1
`);

/**
 * Reduces the count by one. At zero it deletes the count and notifies waiters. Works when the memory is full.
 *
 * KEYS[1] number
 * ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1
 *        error WRONGTYPE when the value is no number
 */
export const LATCH_COUNT_DOWN = new Script(`${NUMBERS}
if not number then return 1 end
if number > 1 then
  touch()
  redis.call('incrby', KEYS[1], -1)
else
  redis.call(ARGV[2], ARGV[1], '0')
  redis.call('del', KEYS[1])
end
return 1
`);

/**
 * Returns the count.
 *
 * KEYS[1] number
 * Reply: text  the number, 0 for none
 *        error WRONGTYPE when the value is no number
 */
const LATCH_COUNT = new Script(`${NUMBERS}
return text or '0'
`);

/**
 * Deletes the count, which opens the latch. Redisson's own delete announces `1`, which leaves its waiters asleep. This
 * script announces `0`, which is correct and wakes them.
 *
 * KEYS[1] number
 * ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1 when there was one, else 0
 *        error WRONGTYPE when the value is no number
 */
const LATCH_REMOVE = new Script(`${NUMBERS}
if not number then return 0 end
redis.call(ARGV[2], ARGV[1], '0')
redis.call('del', KEYS[1])
return 1
`);

export const LATCH_SCRIPTS: readonly Script[] = [LATCH_SET, LATCH_COUNT_DOWN, LATCH_COUNT, LATCH_REMOVE];

/** Countdown latches in Redis, as Redisson's RCountDownLatch. */
export class RedisLatches extends RedisNumbers implements LatchStore {
  set(finalKey: string, count: number): Promise<boolean> {
    return this.run(LATCH_SET, finalKey, [count, ...this.announcing(finalKey)], readDone);
  }

  countDown(finalKey: string): Promise<void> {
    return this.run(LATCH_COUNT_DOWN, finalKey, this.announcing(finalKey), readVoid);
  }

  count(finalKey: string): Promise<number> {
    return this.run(LATCH_COUNT, finalKey, [], (reply) => Math.max(0, readNumber(reply)));
  }

  remove(finalKey: string): Promise<boolean> {
    return this.run(LATCH_REMOVE, finalKey, this.announcing(finalKey), readDone);
  }

  protected override check(finalKey: string): void {
    if (this.link.publish === 'SPUBLISH') this.checkSlots(finalKey);
  }

  /** Rejects a name with braces: Redisson puts braces around it, so the channel may be in another slot. */
  private checkSlots(finalKey: string): void {
    if (hashSlot(this.channel(finalKey)) === hashSlot(this.link.keys.name(finalKey))) return;
    throw new RedisFailure(
      'a latch of this name cannot work in a Redis Cluster with sharded Pub/Sub: the channel on which Redisson announces it ' +
        'is in another slot. Choose a name without braces',
      'not-executed',
      { keyOnly: true },
    );
  }

  protected override channel(finalKey: string): string {
    const { keys } = this.link;
    return keys.latchChannel(keys.name(finalKey));
  }
}
