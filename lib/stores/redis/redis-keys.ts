import { checkStoreKey, FENCE_PREFIX } from '../../core/seam/key-rule.js';
import { hashSlot, tagOfSlot } from './hash-slot.js';

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
    return `${FENCE_PREFIX}{${tagOfSlot(hashSlot(holdName))}}`;
  }

  /** Throws `LockKeyError` for a key that cannot be a lock; the prefix counts. */
  check(key: string): void {
    checkStoreKey(key, this.hold(key));
  }
}
