import { LocalQueue, type QueueHost } from './acquire/local-queue.js';
import type { Wait } from './acquire/wait.js';
import { CompactingMap } from './compacting.js';
import { abortedError, shutdownError } from './errors/error-messages.js';
import type { Kind } from './kinds/kind.js';
import { KINDS, kindOf, type LockKind } from './kinds/kinds.js';
import { LeaseKeeper } from './lease/lease-keeper.js';
import type { Undo } from './lease/undo.js';
import { harmless, LockEventHub, type LockLogger } from './lock-events.js';
import type { Runtime } from './runtime.js';
import type { LockStore } from './seam/lock-store.js';
import type { LockSettings } from './settings/lock-settings.js';
import { StoreHealth } from './store-health.js';
import { StoreRequests } from './store-requests.js';

/** The local queues of one kind, by final key. */
interface Queues {
  readonly all: CompactingMap<string, LocalQueue>;
  readonly host: QueueHost;
}

/** What the parts of the core share, for one service instance. */
export class CoreContext {
  readonly logger: LockLogger;
  readonly events: LockEventHub;
  readonly health: StoreHealth;
  readonly requests: StoreRequests;
  readonly keeper: LeaseKeeper;
  /** `stopping`: only work that runs already may take locks. `closed`: nobody may. */
  phase: 'open' | 'stopping' | 'closed' = 'open';
  private readonly instanceId: string;
  private ownerCount = 0;
  private readonly queues: Readonly<Record<LockKind, Queues>>;

  constructor(
    readonly store: LockStore,
    readonly settings: LockSettings,
    readonly runtime: Runtime,
    logger: LockLogger,
  ) {
    this.logger = harmless(logger);
    this.events = new LockEventHub(this.logger);
    this.health = new StoreHealth(runtime, this.events, this.logger);
    this.requests = new StoreRequests(store, runtime, this.health);
    this.keeper = new LeaseKeeper(this.requests, runtime);
    this.instanceId = runtime.newId();
    const kinds = Object.keys(KINDS) as LockKind[];
    this.queues = Object.fromEntries(kinds.map((kind) => [kind, this.queuesOf(kind)])) as Record<
      LockKind,
      Queues
    >;
    store.onRisk?.((finalKey) => this.keeper.lookAt(finalKey));
  }

  private queuesOf(kind: LockKind): Queues {
    const all = new CompactingMap<string, LocalQueue>();
    const host: QueueHost = {
      runtime: this.runtime,
      maxWaiters: this.settings.maxWaiters,
      alone: kindOf(kind).alone,
      keepAlive: (hold) => this.keeper.add(hold),
      watch: (claim, listener) => this.requests.watch(claim, listener),
      onIdle: (queue) => {
        if (all.get(queue.finalKey) === queue) all.delete(queue.finalKey);
      },
    };
    return { all, host };
  }

  get undo(): Undo {
    return this.requests.undo;
  }

  /** A name for one hold, never used again. Counted ones have Redisson's form: the client's id and a number. */
  nextOwner(owners: Kind['owners'] = 'counted'): string {
    if (owners === 'counted') return `${this.instanceId}:${++this.ownerCount}`;
    return this.runtime.newId().replaceAll('-', '');
  }

  /** The error for a caller that may not take locks any more; undefined while it may. */
  readonly refusal = (wait: Pick<Wait, 'key' | 'nested'>): Error | undefined =>
    this.phase === 'open' || (this.phase === 'stopping' && wait.nested) ? undefined : shutdownError(wait.key);

  /** The same, and also for one that was called off. */
  reasonToStop(wait: Wait): Error | undefined {
    return wait.signal?.aborted
      ? abortedError(wait.key, wait.signal, this.runtime.now() - wait.startedAt)
      : this.refusal(wait);
  }

  queue(kind: LockKind, finalKey: string): LocalQueue {
    const { all, host } = this.queues[kind];
    const existing = all.get(finalKey);
    if (existing) return existing;
    const queue = new LocalQueue(host, finalKey);
    all.set(finalKey, queue);
    return queue;
  }

  /**
   * A caller asks for a forced unlock now. It is to call the returned function when the store has answered: then also
   * grants are not believed that the store gave before and whose answer is still on its way.
   */
  forcing(finalKey: string): () => void {
    const queues = Object.values(this.queues).flatMap(({ all }) => all.get(finalKey) ?? []);
    const attempts = queues.map((queue) => queue.attempts);
    return () => queues.forEach((queue, i) => (queue.forcedUpTo = Math.max(queue.forcedUpTo, attempts[i]!)));
  }

  /** How many keys this process knows of at the moment. */
  get queueCount(): number {
    return Object.values(this.queues).reduce((sum, { all }) => sum + all.size, 0);
  }

  refuseWaiters(): void {
    for (const { all } of Object.values(this.queues)) {
      for (const queue of [...all.values()]) queue.shutDown(this.refusal);
    }
  }
}
