import { PlaceKeeper } from './acquire/place-keeper.js';
import type { LocalQueue } from './acquire/local-queue.js';
import { LocalQueues } from './acquire/local-queues.js';
import type { Wait } from './acquire/wait.js';
import { abortedError, shutdownError } from './errors/error-messages.js';
import { KINDS, kindOf, type LockKind } from './kinds/kinds.js';
import { LeaseKeeper } from './lease/lease-keeper.js';
import type { Undo } from './lease/undo.js';
import { harmless, LockEventHub, type LockLogger } from './lock-events.js';
import { Outages } from './outage/outages.js';
import { Portions } from './portions.js';
import type { Runtime } from './runtime.js';
import type { LockStore } from './seam/lock-store.js';
import type { LockSettings } from './settings/lock-settings.js';
import type { ServiceGroup } from './service-group.js';
import type { Starting } from './starting.js';
import { StoreHealth } from './store-health.js';
import { StoreRequests } from './store-requests.js';

/** What the parts of the core share, for one service instance. */
export class CoreContext {
  readonly logger: LockLogger;
  readonly events: LockEventHub;
  readonly health: StoreHealth;
  readonly requests: StoreRequests;
  readonly keeper: LeaseKeeper;
  readonly places: PlaceKeeper;
  readonly outages: Outages;
  private readonly portions: Portions;
  /** `stopping`: only what runs under a lock of the group may take locks. `closed`: nobody may. */
  phase: 'open' | 'stopping' | 'closed' = 'open';
  private readonly instanceId: string;
  private readonly stopListeners = new Set<() => void>();
  private ownerCount = 0;
  private readonly queues: Readonly<Record<LockKind, LocalQueues>>;

  constructor(
    readonly store: LockStore,
    readonly settings: LockSettings,
    readonly runtime: Runtime,
    logger: LockLogger,
    readonly group: ServiceGroup,
  ) {
    this.logger = harmless(logger);
    this.events = new LockEventHub(this.logger);
    this.instanceId = runtime.newId();
    this.outages = new Outages(runtime, this.instanceId);
    this.portions = new Portions(runtime);
    this.health = new StoreHealth(runtime, this.events, this.logger, this.outages);
    this.requests = new StoreRequests(store, runtime, this.health);
    this.keeper = new LeaseKeeper(this.requests, runtime);
    this.places = new PlaceKeeper(this.requests, runtime);
    const kinds = Object.keys(KINDS) as LockKind[];
    this.queues = Object.fromEntries(kinds.map((kind) => [kind, this.queuesOf(kind)])) as Record<
      LockKind,
      LocalQueues
    >;
    store.onRisk?.((finalKey) => this.keeper.lookAt(finalKey));
  }

  private queuesOf(kind: LockKind): LocalQueues {
    return new LocalQueues(kindOf(kind), {
      runtime: this.runtime,
      maxWaiters: this.settings.maxWaiters,
      keepAlive: (hold) => this.keeper.add(hold),
      lookAt: (hold) => this.keeper.lookAtHold(hold),
      watch: (claim, listener) => this.requests.watch(claim, listener),
      outages: this.outages,
      portions: this.portions,
      leaveLine: (place) => {
        this.places.remove(place);
        this.undo.leave(place.leave());
      },
    });
  }

  get undo(): Undo {
    return this.requests.undo;
  }

  /** A name for one hold, never used again. Counted ones have Redisson's form: the client's id and a number. */
  nextOwner(kind: LockKind): string {
    const { owners } = kindOf(kind);
    if (owners === 'random') return this.runtime.newId().replaceAll('-', '');
    const number = ++this.ownerCount;
    return owners === 'counted' ? `${this.instanceId}:${number}` : `${this.instanceId}:${kind}:${number}`;
  }

  /** Set until the app of the service has started. */
  starting: Starting | undefined;

  /** Work that a caller waits for: it keeps the process alive, also where nothing else of the service does. */
  awaited<T>(work: Promise<T>): Promise<T> {
    return this.starting ? this.starting.during(work) : work;
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

  /** Where a caller lines up. Throws when it has to have a place of its own, and too many wait already. */
  queue(kind: LockKind, finalKey: string, key: string): LocalQueue {
    return this.queues[kind].forCaller(finalKey, key);
  }

  /**
   * A caller asks for a forced unlock now. It is to call the returned function when the store has answered: then also
   * grants are not believed that the store gave before and whose answer is still on its way.
   */
  forcing(finalKey: string): () => void {
    const queues = Object.values(this.queues).flatMap((ofKind) => ofKind.of(finalKey));
    const attempts = queues.map((queue) => queue.attempts);
    const askedAt = this.runtime.now();
    for (const queue of queues) queue.forcedAt = askedAt;
    return () => queues.forEach((queue, i) => queue.forcedOpen(attempts[i]!));
  }

  /** How many keys this process knows of at the moment. */
  get queueCount(): number {
    return Object.values(this.queues).reduce((sum, { keyCount }) => sum + keyCount, 0);
  }

  /** Calls the listener when {@link reasonToStop} may have changed; the returned function ends that. */
  onStop(listener: () => void): () => void {
    this.stopListeners.add(listener);
    return () => this.stopListeners.delete(listener);
  }

  /** Wakes who waits elsewhere than in a local queue; whether they may go on, they ask {@link reasonToStop}. */
  wakeOthers: () => void = () => undefined;

  refuseWaiters(): void {
    for (const ofKind of Object.values(this.queues)) {
      for (const queue of ofKind.all()) queue.shutDown(this.refusal);
    }
    this.wakeOthers();
    for (const listener of [...this.stopListeners]) listener();
  }
}
