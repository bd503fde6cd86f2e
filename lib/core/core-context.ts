import type { LockKind } from './seam/claim.js';
import { shutdownError, storeError } from './errors/error-messages.js';
import { KeyQueue, type Wait } from './acquire/local-queue.js';
import { LeaseKeeper } from './lease/lease-keeper.js';
import { harmless, LockEventHub, type LockLogger } from './lock-events.js';
import type { LockSettings } from './settings/lock-settings.js';
import type { LockStore } from './seam/lock-store.js';
import type { Runtime } from './runtime.js';
import { Settler } from './lease/undo.js';
import { StoreHealth } from './store-health.js';
import { Turnover } from './compacting.js';

/** What the parts of the core share, for one service instance. */
export class CoreContext {
  readonly logger: LockLogger;
  readonly events: LockEventHub;
  readonly health: StoreHealth;
  readonly keeper: LeaseKeeper;
  readonly settler: Settler;
  /** `stopping`: only work that runs already may take locks. `closed`: nobody may. */
  phase: 'open' | 'stopping' | 'closed' = 'open';
  private readonly instanceId: string;
  private ownerCount = 0;
  private readonly turnover = new Turnover();
  private readonly queues: Record<LockKind, Map<string, KeyQueue>> = { exclusive: new Map() };

  constructor(
    readonly store: LockStore,
    readonly settings: LockSettings,
    readonly runtime: Runtime,
    logger: LockLogger,
  ) {
    this.logger = harmless(logger);
    this.events = new LockEventHub(this.logger);
    this.health = new StoreHealth(runtime, this.events, this.logger);
    this.keeper = new LeaseKeeper(store, runtime, this.health);
    this.settler = new Settler(store, runtime);
    this.instanceId = runtime.newId();
  }

  /** Asks the store for something that is no lock, and says so when it fails. */
  async asking<T>(key: string | undefined, doing: string, request: () => Promise<T>): Promise<T> {
    const startedAt = this.runtime.now();
    try {
      const reply = await request();
      this.health.works();
      return reply;
    } catch (failure) {
      this.health.failed(failure);
      throw storeError(key, failure, doing, this.runtime.now() - startedAt);
    }
  }

  /** A name for one hold, never used again. Redisson's form: the client's id and a number. */
  nextOwner(): string {
    return `${this.instanceId}:${++this.ownerCount}`;
  }

  /** The error for a caller that may not take locks any more; undefined while it may. */
  readonly refusal = (wait: Pick<Wait, 'key' | 'nested'>): Error | undefined =>
    this.phase === 'open' || (this.phase === 'stopping' && wait.nested) ? undefined : shutdownError(wait.key);

  queue(kind: LockKind, finalKey: string): KeyQueue {
    const existing = this.queues[kind].get(finalKey);
    if (existing) return existing;
    const queue: KeyQueue = new KeyQueue(kind, finalKey, this.store, this.runtime, () =>
      this.drop(queue, kind, finalKey),
    );
    this.queues[kind].set(finalKey, queue);
    return queue;
  }

  /**
   * A forced unlock is asked for now. When it is answered, call what this gives: it ends also what was granted before
   * and is not known here yet.
   */
  forcing(kind: LockKind, finalKey: string): () => void {
    const queue = this.queues[kind].get(finalKey);
    const attempts = queue?.attempts ?? 0;
    return () => {
      if (queue) queue.forcedUpTo = Math.max(queue.forcedUpTo, attempts);
    };
  }

  private drop(queue: KeyQueue, kind: LockKind, finalKey: string): void {
    const queues = this.queues[kind];
    if (queues.get(finalKey) !== queue) return;
    queues.delete(finalKey);
    if (this.turnover.isDue(queues.size)) this.queues[kind] = new Map(queues);
  }

  /** How many keys this process knows of at the moment. */
  get queueCount(): number {
    return Object.values(this.queues).reduce((sum, queues) => sum + queues.size, 0);
  }

  refuseWaiters(): void {
    for (const queues of Object.values(this.queues)) {
      for (const queue of [...queues.values()]) queue.shutDown(this.refusal);
    }
  }
}
