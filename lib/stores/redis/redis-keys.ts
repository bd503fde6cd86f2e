import { checkStoreKey, OWN_PREFIX } from '../key-rule.js';
import { hashSlot, tagOfSlot } from './hash-slot.js';

/** Returns a name with braces that leads to the same slot: if the name has braces, they already decide. */
const inBraces = (name: string): string => (name.includes('{') ? name : `{${name}}`);

/** A name that is one pair of braces: Redisson gives it the neighbours of the name inside. */
const ONE_PAIR = /^\{[^{}]+\}$/;

/** Returns the end of a name of ours, which no other lock has: no lock has a name that begins with our prefix. */
const inOwnBraces = (name: string): string => (ONE_PAIR.test(name) ? OWN_PREFIX + name : inBraces(name));

/** Prefix of all channels on which processes are notified of grants. */
export const GRANT_CHANNELS = `${OWN_PREFIX}grant:`;

/** Returns short braces that lead to the same slot as the name. */
const slotTag = (name: string): string => `{${tagOfSlot(hashSlot(name))}}`;

/** Returns the process that made an owner id: everything before the last colon. */
const processOf = (owner: string): string => owner.slice(0, Math.max(0, owner.lastIndexOf(':'))) || owner;

/**
 * Number of locks after which the names of those before are forgotten, unless they were used since. Each lock needs its
 * names at least twice. More of them would outlive the quick collections, which costs more than to write them again.
 */
const GENERATION = 128;

/** Kinds with a wait queue of their own: writers are queued with readers. */
export type QueueKind = 'exclusive' | 'fair' | 'read';

/** Methods that name the wait queues. */
const QUEUES = { exclusive: 'queue', fair: 'fairQueue', read: 'readWriteQueue' } as const;

export interface LockNames {
  /** Names of its hold, of the fence of its slot, and of its wait queue. */
  readonly keys: readonly string[];
  /** Channel that announces the end of its hold. */
  readonly channel: string;
  /** Short braces that lead to its slot. */
  readonly slotTag: string;
}

/** Names of everything in Redis that belongs to a lock. Names and braces are Redisson's, fence keys are ours. */
export class RedisKeys {
  private recent = new Map<string, LockNames>();
  private earlier = new Map<string, LockNames>();

  /**  @param prefix `keyPrefix` of the given options or client; channel names have it, too */
  constructor(private readonly prefix: string) {}

  /** Returns the name of the key itself: the hash of a lock, the counter of permits. */
  name(finalKey: string): string {
    return this.prefix + finalKey;
  }

  /** Returns the names of an exclusive lock. */
  ofLock(finalKey: string): LockNames {
    const known = this.recent.get(finalKey);
    if (known) return known;
    const names = this.earlier.get(finalKey) ?? this.namesOf(this.name(finalKey));
    if (this.recent.size === GENERATION) {
      this.earlier = this.recent;
      this.recent = new Map();
    }
    this.recent.set(finalKey, names);
    return names;
  }

  private namesOf(name: string): LockNames {
    return { keys: this.withQueue(name), channel: this.lockChannel(name), slotTag: slotTag(name) };
  }

  /** Returns the names of a hold, of the fence of its slot, and of its wait queue. */
  withQueue(holdName: string): readonly string[] {
    return [holdName, this.fence(holdName), this.queue(holdName)];
  }

  /** Channel that announces the end of an exclusive hold. */
  lockChannel(holdName: string): string {
    return `redisson_lock__channel:${inBraces(holdName)}`;
  }

  /** List of the waiters for a fair lock, in order. */
  fairQueue(holdName: string): string {
    return `redisson_lock_queue:${inBraces(holdName)}`;
  }

  /** Sorted set of the waiters for a fair lock, by the time at which each counts as dead. */
  fairTimeouts(holdName: string): string {
    return `redisson_lock_timeout:${inBraces(holdName)}`;
  }

  /** Channel that announces free permits. Semaphores with and without expiring permits share it. */
  permitChannel(counterName: string): string {
    return `redisson_sc:${inBraces(counterName)}`;
  }

  /** Channel that announces that a latch is open, or closed again. Braces in the name make no difference here. */
  latchChannel(latchName: string): string {
    return `redisson_countdownlatch__channel__{${latchName}}`;
  }

  /** Sorted set of the acquired permits, beside their counter. */
  permitSet(counterName: string): string {
    return `${inBraces(counterName)}:timeout`;
  }

  /** Channel that announces the end of a read or a write lock. */
  readWriteChannel(holdName: string): string {
    return `redisson_rwlock:${inBraces(holdName)}`;
  }

  /** Prefix of the keys that live as long as the leases of readers. */
  readTimeouts(holdName: string): string {
    return inBraces(holdName);
  }

  /** Key that lives as long as the lease of a reader that has entered once. */
  readTimeout(holdName: string, owner: string): string {
    return `${this.readTimeouts(holdName)}:${owner}:rwlock_timeout:1`;
  }

  /** Sorted set of this library's readers, by the ends of their leases. */
  readerIndex(holdName: string): string {
    return `${OWN_PREFIX}readers:${inOwnBraces(holdName)}`;
  }

  /** Wait queue of a read-write lock. */
  readWriteQueue(holdName: string): string {
    return `${OWN_PREFIX}rw_queue:${inOwnBraces(holdName)}`;
  }

  /**
   * Key of the last fencing token given in the hold's slot. It depends on the slot alone, not on any prefix: two
   * prefixes can lead to the same hold, and a proxy may stand in front of a cluster.
   */
  fence(holdName: string): string {
    return `${OWN_PREFIX}fence:${slotTag(holdName)}`;
  }

  /** Wait queue of an exclusive lock. */
  queue(holdName: string): string {
    return `${OWN_PREFIX}queue:${inOwnBraces(holdName)}`;
  }

  /** Returns the key whose wait queue has this name, and a kind that is queued there; undefined for another name. */
  queuedAt(name: string): { readonly finalKey: string; readonly kind: QueueKind } | undefined {
    for (const kind of ['exclusive', 'fair', 'read'] as const) {
      const queueOf = (hold: string): string => this[QUEUES[kind]](hold);
      const rest = name.slice(queueOf('{').length - 1);
      for (const hold of [rest.slice(1, -1), rest.slice(OWN_PREFIX.length), rest]) {
        if (hold.startsWith(this.prefix) && queueOf(hold) === name)
          return { finalKey: hold.slice(this.prefix.length), kind };
      }
    }
    return undefined;
  }

  /** Key of a note of a process. */
  note(name: string): string {
    return `${OWN_PREFIX}process:{${name}}`;
  }

  /** Channel on which a process is asked, in the slot of its note. The pattern of the channels for grants has it. */
  noteChannel(name: string): string {
    return `${GRANT_CHANNELS}asked:{${name}}`;
  }

  /** Key for finding out whether wait queues can be used, with braces like theirs. In the name's slot, if given. */
  queueProbe(holdName?: string): string {
    return `${OWN_PREFIX}queue:probe${holdName === undefined ? '' : `:${slotTag(holdName)}`}`;
  }

  /**
   * Channel on which a process is notified of the grants of all its owners. In a cluster, give the braces of a slot:
   * there is one channel for each slot.
   */
  grantChannel(owner: string, inSlot?: string): string {
    return GRANT_CHANNELS + (inSlot === undefined ? '' : `${inSlot}:`) + processOf(owner);
  }

  /** Channel for finding out whether processes can be notified. No process has the name `probe`. */
  grantProbe(holdName?: string): string {
    return this.grantChannel('probe', holdName === undefined ? undefined : slotTag(holdName));
  }

  /**
   * Checks that the key can be a lock, including the prefix.
   *
   * @throws {LockKeyError} when it cannot
   */
  check(finalKey: string): void {
    checkStoreKey(this.name(finalKey));
  }
}
