import { EntryKeeper } from '../acquire/entry-keeper.js';
import { ServiceQueues } from '../acquire/service-queues.js';
import { SlowWaits } from '../wait/slow-waits.js';
import { WaitCap } from '../wait/wait-cap.js';
import type { TimedWait } from '../wait/wait.js';
import { Holders } from '../holders/holders.js';
import { HoldTimes } from '../report/hold-times.js';
import { OwnProcess } from '../holders/own-process.js';
import { instanceIdFrom, permitOwnerOf } from '../seam/process-record.js';
import type { OwnHold } from '../holders/questions.js';
import { abortedError, shutdownError, storeKeyError } from '../errors/error-messages.js';
import { LockKeyError } from '../errors/lock.errors.js';
import { InFlight } from '../util/in-flight.js';
import { KINDS, kindOf, type LockKind } from '../kinds/kinds.js';
import { LeaseKeeper } from '../lease/lease-keeper.js';
import { Revocations } from '../lease/revocations.js';
import type { Undo } from '../lease/undo.js';
import { harmless, LockEventHub, type LockLogger } from '../report/lock-events.js';
import { Outages } from '../outage/outages.js';
import { Portions } from '../util/portions.js';
import type { Runtime } from '../util/runtime.js';
import { Opening } from './opening.js';
import type { KindTraits } from '../seam/kind-traits.js';
import type { LockStore, AppStart, StoreHost } from '../seam/lock-store.js';
import type { LockSettings } from '../settings/lock-settings.js';
import type { ServiceGroup } from './service-group.js';
import type { Starting } from './starting.js';
import { showKeyWith, type ShowKey } from '../util/shown-key.js';
import { SlowReports } from './slow-reports.js';
import { StoreHealth } from './store-health.js';
import { StoreRequests } from './store-requests.js';
import { Telemetry } from './telemetry.js';

type Traits = Readonly<Record<LockKind, KindTraits>>;

/** Shared state of the core, for one service instance. */
export class CoreContext {
  readonly logger: Required<LockLogger>;
  /** Returns a key as logs, errors and events show it. Real keys are only for the store, and for callers that ask. */
  readonly shown: ShowKey;
  readonly events: LockEventHub;
  readonly telemetry: Telemetry;
  readonly health: StoreHealth;
  readonly opening: Opening;
  readonly requests: StoreRequests;
  readonly keeper: LeaseKeeper;
  readonly entries: EntryKeeper;
  readonly outages: Outages;
  readonly revocations: Revocations;
  readonly slowWaits: SlowWaits;
  readonly waitCap: WaitCap;
  readonly process: OwnProcess;
  /** Requests for keys and objects that have no reply yet. */
  readonly asking = new InFlight();
  readonly holders: Holders;
  readonly holdTimes: HoldTimes;
  /** `stopping`: only work under a lock of the group may acquire locks. `closed`: no caller may. */
  phase: 'open' | 'stopping' | 'closed' = 'open';
  /** Name of this service in the store: what the names of its owners begin with. */
  readonly instanceId: string;
  private readonly stopListeners = new Set<() => void>();
  /** Abort when unsent acquires are withdrawn: first the acquires of new work, then all. */
  private readonly stopping = new AbortController();
  private readonly closing = new AbortController();
  private readonly whenStopping = [this.stopping.signal];
  private readonly whenClosing = [this.closing.signal];
  private ownerCount = 0;
  /** How the store keeps each kind. */
  readonly traits: Traits;
  readonly queues: ServiceQueues;

  constructor(
    readonly store: LockStore,
    readonly settings: LockSettings,
    readonly runtime: Runtime,
    logger: LockLogger,
    readonly group: ServiceGroup,
    service = '',
  ) {
    this.logger = harmless(logger);
    this.shown = showKeyWith(settings.redactKey, this.logger.warn);
    this.events = new LockEventHub(this.logger);
    this.telemetry = new Telemetry(service, this.shown);
    this.events.on('store-down', ({ cause }) => this.telemetry.storeDown(cause));
    this.events.on('store-up', ({ downMs }) => this.telemetry.storeUp(downMs));
    this.instanceId = instanceIdFrom(runtime.newId());
    this.outages = new Outages(runtime, this.instanceId);
    this.health = new StoreHealth(runtime, this.events, this.logger, this.outages);
    this.opening = new Opening(store, {
      logger: this.logger,
      events: this.events,
      storeHost: this.storeHost(),
      failed: (failure) => this.health.failed(failure),
    });
    this.requests = new StoreRequests(
      store,
      runtime,
      this.health,
      this.opening,
      this.shown,
      () => this.phase === 'closed',
    );
    const notes = settings.holderInfo ? store.processes : undefined;
    const holds = (): readonly OwnHold[] => this.keeper.all;
    this.process = new OwnProcess({
      ...{ instanceId: this.instanceId, runtime, logger: this.logger, holds, appName: settings.appName },
      ...{ notes },
      periodMs: settings.watchdogMs,
    });
    this.holders = new Holders({
      ...{ store, runtime, own: this.process, notes, holds },
    });
    this.holdTimes = new HoldTimes(settings.maxWaiters);
    const slow = new SlowReports(this.events, this.logger, this.shown, this.holders);
    this.keeper = new LeaseKeeper(this.requests, runtime, {
      slowHoldMs: settings.slowHoldMs,
      added: this.process.used,
      report: slow.hold,
    });
    this.slowWaits = new SlowWaits({
      ...{ runtime, slowWaitMs: settings.slowWaitMs },
      report: slow.waits,
    });
    this.waitCap = new WaitCap(settings.maxWaitMs);
    this.entries = new EntryKeeper(this.requests, runtime, this.process.used);
    this.revocations = new Revocations({
      ...{ store, events: this.events, logger: this.logger, shown: this.shown },
      now: () => runtime.now(),
      holds: () => this.keeper.all,
    });
    const kinds = Object.keys(KINDS) as LockKind[];
    this.traits = Object.fromEntries(kinds.map((kind) => [kind, this.requests.traits(kind)])) as Traits;
    this.queues = new ServiceQueues(this.traits, {
      ...{ runtime, maxWaiters: settings.maxWaiters, shown: this.shown },
      ...{ outages: this.outages, portions: new Portions(runtime), slowWaits: this.slowWaits },
      keepAlive: (hold) => this.keeper.add(hold),
      lookAt: (hold) => this.keeper.lookAtHold(hold),
      watch: (claim, listener) => this.requests.watch(claim, listener),
      leaveQueue: (entry) => {
        this.entries.remove(entry);
        this.undo.leave(entry);
      },
    });
  }

  /** Returns the service as its store sees it. */
  private storeHost(): StoreHost {
    const starting = (): AppStart | undefined => this.starting;
    return {
      runtime: this.runtime,
      keyPrefix: this.settings.keyPrefix,
      watchdogMs: this.settings.watchdogMs,
      get starting() {
        return starting();
      },
      log: (sentence) => this.logger.log(sentence),
      warn: (sentence) => this.logger.warn(sentence),
      atRisk: (finalKey) => this.keeper.lookAt(finalKey),
      revocationRequested: (finalKey, owner) => this.revocations.requested(finalKey, owner),
    };
  }

  get undo(): Undo {
    return this.requests.undo;
  }

  /**
   * Returns a name for one hold, never used again. Counted names have Redisson's form: the client's id and a number.
   */
  nextOwner(kind: LockKind): string {
    const { owners } = kindOf(kind);
    const number = ++this.ownerCount;
    if (owners === 'short') return permitOwnerOf(this.instanceId, number);
    return owners === 'counted' ? `${this.instanceId}:${number}` : `${this.instanceId}:${kind}:${number}`;
  }

  /** Set until the app of the service has started. */
  starting: Starting | undefined;

  /** Wraps work that a caller waits for: it keeps the process alive, also if nothing else of the service does. */
  awaited<T>(work: Promise<T>): Promise<T> {
    return this.starting ? this.starting.during(work) : work;
  }

  /** Returns the error for a caller that must not acquire locks any more; undefined while it may. */
  readonly refusal = (wait: Pick<TimedWait, 'key' | 'nested'>): Error | undefined =>
    this.phase === 'open' || (this.phase === 'stopping' && wait.nested)
      ? undefined
      : shutdownError(this.shown(wait.key));

  /** Returns the error for a caller that must stop waiting: it was aborted, or {@link refusal} has an error. */
  reasonToStop(wait: TimedWait): Error | undefined {
    return wait.signal?.aborted
      ? abortedError(this.shown(wait.key), wait.signal, this.runtime.now() - wait.startedAt)
      : this.refusal(wait);
  }

  /**
   * Returns the name of a key in the store.
   *
   * @throws {LockKeyError} when the store can have nothing of that name
   */
  finalKey(key: string): string {
    const finalKey = this.settings.keyPrefix + key;
    try {
      this.store.checkKey?.(finalKey);
    } catch (error) {
      throw error instanceof LockKeyError ? storeKeyError(this.shown(key), error) : error;
    }
    return finalKey;
  }

  /** Returns the signals that withdraw an unsent acquire of a caller. */
  withdrawnBy({ nested, signal }: TimedWait): readonly AbortSignal[] {
    const stops = nested ? this.whenClosing : this.whenStopping;
    return signal ? [...stops, signal] : stops;
  }

  /** Registers a listener for changes of {@link reasonToStop}; returns a function that removes it. */
  onStop(listener: () => void): () => void {
    this.stopListeners.add(listener);
    return () => this.stopListeners.delete(listener);
  }

  /** Wakes callers that wait outside the local queues; they check {@link reasonToStop} themselves. */
  wakeOthers: () => void = () => undefined;

  refuseWaiters(): void {
    this.stopping.abort();
    if (this.phase === 'closed') this.closing.abort();
    this.queues.shutDown(this.refusal);
    this.wakeOthers();
    for (const listener of [...this.stopListeners]) listener();
  }
}
