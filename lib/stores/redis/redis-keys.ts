import { LockKeyError } from '../../core/lock.errors.js';
import { hashSlot, hashTag, tagOfSlot } from './hash-slot.js';

const FENCE = 'nest_redis_lock_fence:';

/** Where everything of a lock lives in Redis. Names and brace rule are Redisson's, the fence keys are ours. */
export class RedisKeys {
  /** @param prefix the `keyPrefix` of the client that was handed over; it also counts for channels. */
  constructor(private readonly prefix: string) {}

  /** The hash that is the hold. */
  hold(key: string): string {
    return this.prefix + key;
  }

  /** The channel on which the end of a hold is announced. */
  channel(holdName: string): string {
    return holdName.includes('{')
      ? `redisson_lock__channel:${holdName}`
      : `redisson_lock__channel:{${holdName}}`;
  }

  /**
   * The last fencing token given in the hold's slot. It depends on the slot alone, not on any prefix: two
   * prefixes can lead to the same hold, and a proxy may stand in front of a cluster.
   */
  fence(holdName: string): string {
    return `${FENCE}{${tagOfSlot(hashSlot(holdName))}}`;
  }

  slot(key: string): number {
    return hashSlot(this.hold(key));
  }

  /**
   * Refuses a name that fencing tokens have: as a lock it would stop every other lock of its slot. And one whose
   * channel lives in another slot: in a cluster, Java could take it but never release it.
   */
  check(key: string): void {
    const name = this.hold(key);
    if (name.startsWith(FENCE)) {
      throw new LockKeyError(
        `The key "${key}" is a name under which fencing tokens are kept. Choose another name or a keyPrefix.`,
        { key },
      );
    }
    if (!name.includes('{') && !name.includes('}')) return;
    if (name.includes('{') && hashTag(name) !== name) return;
    throw new LockKeyError(
      `The key "${key}" cannot work in a Redis Cluster: its braces do not enclose anything. ` +
        `Use no braces, or put the part that decides the slot into one pair, as in "order:{42}".`,
      { key },
    );
  }
}
