import { CompactingMap } from '../util/compacting.js';
import { queueFullError } from '../errors/error-messages.js';
import type { Hold } from '../lease/hold.js';
import { LocalQueue } from './local-queue.js';
import type { QueueHost } from './queue-host.js';

export type LocalQueuesHost = Omit<
  QueueHost<LocalQueue>,
  'singleHolder' | 'ofOneCaller' | 'isFull' | 'onIdle'
>;

/**
 * Local queues of one kind. The callers for one key share a queue. For kinds whose callers each enqueue in the store,
 * each caller has its own queue, and is its contender.
 */
export class LocalQueues {
  private readonly sharedQueues = new CompactingMap<string, LocalQueue>();
  private readonly ownQueues = new CompactingMap<string, Set<LocalQueue>>();
  private readonly host: QueueHost<LocalQueue>;

  constructor(
    singleHolder: boolean,
    private readonly eachQueued: boolean,
    host: LocalQueuesHost,
  ) {
    this.host = {
      ...host,
      singleHolder,
      ofOneCaller: eachQueued,
      isFull: ({ finalKey }) => this.isFull(finalKey),
      onIdle: (queue) => this.remove(queue),
    };
  }

  /** How many keys callers hold or ask for. */
  get keyCount(): number {
    return this.sharedQueues.size + this.ownQueues.size;
  }

  /**
   * The queue of a caller. Throws when it gets one of its own and `maxWaiters` wait already, or would wait behind one that
   * has the key or may get it.
   */
  forCaller(finalKey: string, key: string): LocalQueue {
    if (this.eachQueued) return this.ownQueue(finalKey, key);
    const existing = this.sharedQueues.get(finalKey);
    if (existing) return existing;
    const queue = new LocalQueue(this.host, finalKey);
    this.sharedQueues.set(finalKey, queue);
    return queue;
  }

  /** Returns the queues of one key. */
  of(finalKey: string): LocalQueue[] {
    const shared = this.sharedQueues.get(finalKey);
    return shared ? [shared] : [...(this.ownQueues.get(finalKey) ?? [])];
  }

  /** Returns the hold that a caller has of a key, of a kind with one owner at a time. Callers of `fair` have it in order. */
  heldOf(finalKey: string): Hold | undefined {
    const [first] = this.ownQueues.get(finalKey) ?? [];
    return (this.sharedQueues.get(finalKey) ?? first)?.held;
  }

  all(): LocalQueue[] {
    return [...this.sharedQueues.values(), ...[...this.ownQueues.values()].flatMap((ofKey) => [...ofKey])];
  }

  private ownQueue(finalKey: string, key: string): LocalQueue {
    const { maxWaiters, shown } = this.host;
    const ofKey = this.ownQueues.get(finalKey) ?? new Set();
    const [first] = ofKey;
    if (ofKey.size >= maxWaiters + (first?.waiting ? 0 : 1)) throw queueFullError(shown(key), maxWaiters);
    const queue = new LocalQueue(this.host, finalKey, ofKey.size);
    this.ownQueues.set(finalKey, ofKey.add(queue));
    return queue;
  }

  private isFull(finalKey: string): boolean {
    const ofKey = this.ownQueues.get(finalKey);
    if (!ofKey) return true;
    const [first] = ofKey;
    return ofKey.size - (first?.held ? 1 : 0) > this.host.maxWaiters;
  }

  private remove(queue: LocalQueue): void {
    const { finalKey } = queue;
    if (this.sharedQueues.get(finalKey) === queue) this.sharedQueues.delete(finalKey);
    const ofKey = this.ownQueues.get(finalKey);
    if (ofKey?.delete(queue) && ofKey.size === 0) this.ownQueues.delete(finalKey);
  }
}
