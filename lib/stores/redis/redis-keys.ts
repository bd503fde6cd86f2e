import { checkStoreKey, FENCE_PREFIX } from '../key-rule.js';
import { hashSlot, tagOfSlot } from './hash-slot.js';

/** A name that leads to the same slot as the other one: its braces, if it has some, are what decides. */
const inBraces = (name: string): string => (name.includes('{') ? name : `{${name}}`);

/** Where everything of a lock lives in Redis. Names and brace rule are Redisson's, the fence keys are ours. */
export class RedisKeys {
  /** @param prefix the `keyPrefix` of the client that was handed over; it also counts for channels. */
  constructor(private readonly prefix: string) {}

  /** What has the final key's name: the hash of a lock, the counter of permits. */
  name(finalKey: string): string {
    return this.prefix + finalKey;
  }

  /** The channel on which the end of an exclusive hold is announced. */
  lockChannel(holdName: string): string {
    return `redisson_lock__channel:${inBraces(holdName)}`;
  }

  /** The channel on which it is announced that a permit is free. */
  permitChannel(counterName: string): string {
    return `redisson_sc:${inBraces(counterName)}`;
  }

  /** The sorted set of the permits that are taken, beside their counter. */
  permitSet(counterName: string): string {
    return `${inBraces(counterName)}:timeout`;
  }

  /**
   * The last fencing token given in the hold's slot. It depends on the slot alone, not on any prefix: two
   * prefixes can lead to the same hold, and a proxy may stand in front of a cluster.
   */
  fence(holdName: string): string {
    return `${FENCE_PREFIX}{${tagOfSlot(hashSlot(holdName))}}`;
  }

  /** Throws `LockKeyError` for a key that cannot be a lock; the prefix counts. */
  check(finalKey: string): void {
    checkStoreKey(finalKey, this.name(finalKey));
  }
}
