import { checkStoreKey, FENCE_PREFIX } from '../key-rule.js';
import { hashSlot, tagOfSlot } from './hash-slot.js';

/** A name that leads to the same slot as the other one: its braces, if it has some, are what decides. */
const inBraces = (name: string): string => (name.includes('{') ? name : `{${name}}`);

/** What the names of all channels begin with on which processes are told of their grants. */
export const TURN_CHANNELS = 'nest_redis_lock_turn:';

/** Short braces that lead to the same slot as the name. */
const slotTag = (name: string): string => `{${tagOfSlot(hashSlot(name))}}`;

/** The process that has named an owner: all before the last colon. */
const processOf = (owner: string): string => owner.slice(0, Math.max(0, owner.lastIndexOf(':'))) || owner;

/** How many locks' names are remembered. Each is asked for at least twice. */
const REMEMBERED = 1_000;

/** The names of an exclusive lock. */
export interface LockNames {
  /** Of its hold, of the fence of its slot, and of its line. */
  readonly keys: readonly string[];
  /** Where the end of its hold is announced. */
  readonly channel: string;
}

/** Where everything of a lock lives in Redis. Names and brace rule are Redisson's, the fence keys are ours. */
export class RedisKeys {
  private readonly names = new Map<string, LockNames>();

  /** @param prefix the `keyPrefix` of the client that was handed over; it also counts for channels. */
  constructor(private readonly prefix: string) {}

  /** What has the final key's name: the hash of a lock, the counter of permits. */
  name(finalKey: string): string {
    return this.prefix + finalKey;
  }

  /** All of an exclusive lock. */
  ofLock(finalKey: string): LockNames {
    const known = this.names.get(finalKey);
    if (known) return known;
    const name = this.name(finalKey);
    const names = { keys: this.withLine(name), channel: this.lockChannel(name) };
    if (this.names.size === REMEMBERED) this.names.clear();
    this.names.set(finalKey, names);
    return names;
  }

  /** A hold, the fence of its slot, and its line. */
  withLine(holdName: string): readonly string[] {
    return [holdName, this.fence(holdName), this.line(holdName)];
  }

  /** The channel on which the end of an exclusive hold is announced. */
  lockChannel(holdName: string): string {
    return `redisson_lock__channel:${inBraces(holdName)}`;
  }

  /** The list of those who wait for a fair lock, in order. */
  fairQueue(holdName: string): string {
    return `redisson_lock_queue:${inBraces(holdName)}`;
  }

  /** The sorted set of the same, by when they count as dead. */
  fairTimeouts(holdName: string): string {
    return `redisson_lock_timeout:${inBraces(holdName)}`;
  }

  /** The channel on which it is announced that a permit is free; semaphores, expirable or not, have the same. */
  permitChannel(counterName: string): string {
    return `redisson_sc:${inBraces(counterName)}`;
  }

  /** The channel on which it is announced that a latch is open, or closed again. Braces in the name change nothing in it. */
  latchChannel(latchName: string): string {
    return `redisson_countdownlatch__channel__{${latchName}}`;
  }

  /** The sorted set of the permits that are taken, beside their counter. */
  permitSet(counterName: string): string {
    return `${inBraces(counterName)}:timeout`;
  }

  /** The channel on which the end of a read or a write lock is announced. */
  readWriteChannel(holdName: string): string {
    return `redisson_rwlock:${inBraces(holdName)}`;
  }

  /** What the names of the keys begin with that live as long as the leases of readers. */
  readTimeouts(holdName: string): string {
    return inBraces(holdName);
  }

  /** The key that lives as long as the lease of a reader that has entered once. */
  readTimeout(holdName: string, owner: string): string {
    return `${this.readTimeouts(holdName)}:${owner}:rwlock_timeout:1`;
  }

  /** The sorted set of the readers of this library, by the ends of their leases. */
  readerIndex(holdName: string): string {
    return `${FENCE_PREFIX}readers:${inBraces(holdName)}`;
  }

  /** The line of those that wait for a read or a write lock. */
  readWriteLine(holdName: string): string {
    return `${FENCE_PREFIX}rwline:${inBraces(holdName)}`;
  }

  /**
   * The last fencing token given in the hold's slot. It depends on the slot alone, not on any prefix: two
   * prefixes can lead to the same hold, and a proxy may stand in front of a cluster.
   */
  fence(holdName: string): string {
    return FENCE_PREFIX + slotTag(holdName);
  }

  /** The line of those that wait for an exclusive lock. */
  line(holdName: string): string {
    return `${FENCE_PREFIX}line:${inBraces(holdName)}`;
  }

  /** A key on which it is tried out whether lines can be used: the names of lines have braces there. In the name's slot, if given. */
  lineProbe(holdName?: string): string {
    return `${FENCE_PREFIX}line:probe${holdName === undefined ? '' : `:${slotTag(holdName)}`}`;
  }

  /**
   * The channel on which a process is told of its grants: that of all owners that it names. With the name of a hold, in a
   * cluster, of those in its slot.
   */
  turnChannel(owner: string, holdName?: string): string {
    return TURN_CHANNELS + (holdName === undefined ? '' : `${slotTag(holdName)}:`) + processOf(owner);
  }

  /** A channel on which it is tried out whether processes can be told: their names are no words. */
  turnProbe(holdName?: string): string {
    return this.turnChannel('probe', holdName);
  }

  /** Throws `LockKeyError` for a key that cannot be a lock; the prefix counts. */
  check(finalKey: string): void {
    checkStoreKey(finalKey, this.name(finalKey));
  }
}
