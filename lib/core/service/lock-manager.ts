import { Acquisition, type Refused } from '../acquire/acquisition.js';
import { kindIn } from '../acquire/keys-of-call.js';
import { InFlight } from '../util/in-flight.js';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { PermitState } from '../seam/reply.js';
import { CoreContext } from '../context/core-context.js';
import { heldLocks, type HeldLock, type LockUsage, type OneOfSeveral } from './held-locks.js';
import { listPage, type ListOptions, type LockList } from './listing.js';
import { extendLease, verifyLease, downgradeLease } from '../lease/change-lease.js';
import { currentSection, Section } from '../nesting/section.js';
import type { InspectedKey } from '../holders/holders.js';
import { inspectKey, permitsOf, revokeKey, stateOf } from './inspecting.js';
import { forceUnlock } from '../lease/force-unlock.js';
import type { Hold } from '../lease/hold.js';
import { Lease, type LeaseHost } from '../lease/lease.js';
import type { LeasePart } from '../lease/lease-part.js';
import { isTaken, withAdvice, withLabel, withStackFromHere } from '../errors/lock.errors.js';
import type { LockEventListener, LockEvents, LockLogger } from '../report/lock-events.js';
import type { KeyOfCall } from '../settings/acquire-options.js';
import type { LockCall } from '../settings/lock-call.js';
import type { LockSettings } from '../settings/lock-settings.js';
import type { LockStore } from '../seam/lock-store.js';
import { CountDownLatch } from '../objects/count-down-latch.js';
import { ObjectContext } from '../objects/object-context.js';
import { Semaphore } from '../objects/semaphore.js';
import type { RevocationListener } from '../lease/revocations.js';
import { Releasing, type Ending } from '../lease/releasing.js';
import { printsOnly } from '../util/printing.js';
import { systemRuntime, type Runtime } from '../util/runtime.js';
import type { ShowKey } from '../util/shown-key.js';
import { ServiceGroup } from '../context/service-group.js';
import { Starting } from '../context/starting.js';
import { acquisitions } from '../context/telemetry.js';
import { Shutdown } from './shutdown.js';

/** Function that runs while the lock is held. */
export type LockSection<T> = (lease: Lease) => T | PromiseLike<T>;

/** Whether a section ran, and its result. */
export type Attempt<T> = { readonly ran: true; readonly value: T } | { readonly ran: false };

/** Acquires, renews and ends leases, for one service instance on one store. It knows neither Nest nor Redis. */
export class LockManager implements LeaseHost {
  private readonly core: CoreContext;
  private readonly releasing: Releasing;
  private readonly acquisition: Acquisition;
  private readonly inFlight = new InFlight();
  private readonly objects: ObjectContext;
  private readonly shutdown: Shutdown;

  constructor(
    private readonly store: LockStore,
    readonly settings: LockSettings,
    logger: LockLogger,
    private readonly runtime: Runtime = systemRuntime(),
    group = new ServiceGroup(),
    service = '',
  ) {
    this.core = new CoreContext(store, settings, runtime, logger, group, service);
    this.core.requests.checkKind('exclusive');
    this.releasing = new Releasing(this.core);
    this.acquisition = new Acquisition(this, this.core, this.releasing);
    this.objects = new ObjectContext(this.core, this.inFlight);
    this.shutdown = new Shutdown(this.core, this.inFlight);
  }

  on<E extends keyof LockEvents>(event: E, listener: LockEventListener<E>): () => void {
    return this.core.events.on(event, listener);
  }

  /** Name of this service in the store: what the names of its owners begin with. */
  get instanceId(): string {
    return this.core.instanceId;
  }

  /** See {@link LockStore.place}. */
  get place(): string {
    return this.store.place ?? '';
  }

  /** @internal What a candidate for a leadership uses of the service beside {@link acquire}. */
  get surroundings(): Pick<CoreContext, 'runtime' | 'events' | 'logger' | 'onStop' | 'finalKey'> {
    return this.core;
  }

  readonly now = (): number => this.runtime.now();
  readonly newId = (): string => this.runtime.newId();

  /** Throws `LockConfigurationError` when the store cannot do what the options of a call say. */
  readonly checkCall = (call: LockCall): void => this.core.requests.checkCall(call);

  /** Returns a key as logs, errors and events show it. */
  readonly shown: ShowKey = (key) => this.core.shown(key);

  checkExpiry(hold: Hold): void {
    this.core.keeper.checkExpiry(hold);
  }

  /** Returns why holds of a kind have no fencing token. */
  whyNoToken(kind: LockKind): string {
    const { fenced, noun } = kindOf(kind);
    if (!fenced) return `several may hold a ${noun} at once, in no order`;
    return this.core.traits[kind].fenced ? 'fencing is off' : `${this.store.name} has none for a ${noun}`;
  }

  /** @param forCaller whether the caller gets the error, and so the holder in it */
  acquire(keys: readonly KeyOfCall[], call: LockCall, forCaller = call.showsHolder): Promise<Lease> {
    if (!acquisitions.hasSubscribers) return this.acquireNow(keys, call, forCaller);
    return this.core.telemetry.acquire(keys, call, () => this.acquireNow(keys, call, forCaller));
  }

  private acquireNow(keys: readonly KeyOfCall[], call: LockCall, forCaller: boolean): Promise<Lease> {
    const startedAt = this.runtime.now();
    this.inFlight.begin();
    const granted = (parts: readonly LeasePart[]): Lease => this.granted(parts, startedAt, call);
    const refused: Refused = (error, key) => this.refused(error, keys, startedAt, call, forCaller, key);
    try {
      return this.core.awaited(this.acquisition.take(keys, startedAt, call, granted, refused));
    } catch (error) {
      return Promise.reject(error).catch((failure: unknown) => refused(failure));
    }
  }

  /**
   * Acquires a key for a call that acquires locks of several services. Unless it is `isOnlyLock`, its lease is renewed until
   * all are held.
   */
  async acquireOneOfSeveral(key: string, call: LockCall, isOnlyLock: boolean): Promise<OneOfSeveral> {
    const startedAt = this.runtime.now();
    const leaseMeanwhile = isOnlyLock ? call.leaseMs : undefined;
    const acquire = (): Promise<Lease> => this.acquireOne(key, call, startedAt, leaseMeanwhile);
    const traced = acquisitions.hasSubscribers
      ? this.core.telemetry.acquire([key], call, acquire)
      : acquire();
    const lease = await traced;
    const allHeld = async (): Promise<void> => {
      try {
        await this.core.awaited(this.acquisition.allHeld(lease.parts, call, leaseMeanwhile));
      } catch (error) {
        throw withLabel(error, call.label);
      }
      this.releasing.acquired(lease.parts, startedAt);
    };
    return { lease, allHeld };
  }

  private async acquireOne(
    key: string,
    call: LockCall,
    startedAt: number,
    leaseMeanwhile: number | undefined,
  ): Promise<Lease> {
    this.inFlight.begin();
    try {
      const taking = this.acquisition.takeOneOfSeveral(key, startedAt, call, leaseMeanwhile);
      return new Lease(this, await this.core.awaited(taking));
    } catch (error) {
      return this.refused(error, [key], startedAt, call, true);
    }
  }

  private granted(parts: readonly LeasePart[], startedAt: number, { inside }: LockCall): Lease {
    this.releasing.acquired(parts, startedAt);
    return new Lease(this, parts, inside);
  }

  /** @param one the key that was refused: the key of the error is only what people see */
  private async refused(
    error: unknown,
    keys: readonly KeyOfCall[],
    startedAt: number,
    { kind, label, permits, waitMs }: LockCall,
    forCaller: boolean,
    one = keys[0]!,
  ): Promise<never> {
    const key = typeof one === 'object' ? one.key : one;
    if (forCaller && isTaken(error)) this.core.queues.explainHolder(error, this.settings.keyPrefix + key);
    // Before anything is awaited: V8 knows the caller only here.
    withStackFromHere(withLabel(this.core.waitCap.explain(error, waitMs), label));
    if (isTaken(error)) {
      const waitedMs = Math.round(this.runtime.now() - startedAt);
      const { waitersAhead, heldAs } = error;
      const holder = forCaller ? await this.core.holders.of(this.settings.keyPrefix + key) : undefined;
      if (forCaller) withAdvice(error, holder, this.core.holdTimes.retryAfterMs(error, permits));
      this.core.events.emit('busy', () => ({
        ...{ key: this.shown(key), kind: kindIn(keys, key) ?? kind, label, waitedMs, waitersAhead },
        ...(heldAs && { heldAs }),
        ...(holder && { holder }),
      }));
    }
    this.inFlight.end();
    throw error;
  }

  /** Resolves with null when the lock is taken; every other error is thrown. */
  async tryAcquire(keys: readonly KeyOfCall[], call: LockCall): Promise<Lease | null> {
    try {
      return await this.acquire(keys, call, false);
    } catch (error) {
      if (isTaken(error)) return null;
      throw error;
    }
  }

  /** Runs `section` under the lock. Resolves with its result, or rejects with its error. */
  withLock<T>(keys: readonly KeyOfCall[], call: LockCall, section: LockSection<T>): Promise<T> {
    return this.runUnder(this.acquire(keys, call), call, section);
  }

  /** Like {@link withLock}, but resolves with `{ ran: false }` when the lock is taken. Every other error is thrown. */
  async tryWithLock<T>(
    keys: readonly KeyOfCall[],
    call: LockCall,
    section: LockSection<T>,
  ): Promise<Attempt<T>> {
    const lease = await this.tryAcquire(keys, call);
    return lease ? { ran: true, value: await this.runUnder(lease, call, section) } : { ran: false };
  }

  async runSection<T>(lease: Lease, section: LockSection<T>): Promise<T> {
    const open = this.openSection(lease, currentSection());
    try {
      return await this.core.telemetry.inSection(open, section, lease);
    } finally {
      open.close();
    }
  }

  /** Opens a section of the lease inside `enclosing`. The caller has to close it. */
  openSection(lease: Lease, enclosing: Section | undefined): Section {
    return new Section(this, this.core.group, lease, enclosing);
  }

  private async runUnder<T>(
    granted: Lease | Promise<Lease>,
    call: LockCall,
    section: LockSection<T>,
  ): Promise<T> {
    const lease = await granted;
    let result: T;
    const open = this.openSection(lease, currentSection());
    try {
      // The lease may end before its section begins, because this process was paused.
      lease.mustBeHeld('run');
      result = await this.core.telemetry.inSection(open, section, lease);
      lease.succeeded(call);
    } finally {
      open.close();
      // A nested call may still enter another key of the lease.
      while (lease.entered) await lease.entered.emptied();
      lease.close();
      const ended = this.end(lease);
      if (call.awaitRelease) await ended;
    }
    // If the caller does not wait for the release, a loss that only the release detects comes too late for it.
    if (call.onLost === 'throw' && lease.loss) throw lease.loss;
    return result;
  }

  extend(lease: Lease, ms: number): Promise<void> {
    return this.core.awaited(extendLease(this.core, lease, ms));
  }

  verify(lease: Lease): Promise<boolean> {
    return this.core.awaited(verifyLease(this.core, lease));
  }

  downgrade(lease: Lease): Promise<void> {
    return this.core.awaited(downgradeLease(this.core, lease));
  }

  release(lease: Lease): Promise<Ending> {
    const released = () => this.releasing.releaseAll(lease.parts).finally(() => this.ended(lease));
    return (lease.ending ??= this.core.awaited(released()));
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.core.awaited(stateOf(this.core, key))) !== null;
  }

  inspect(key: string): Promise<InspectedKey | null> {
    return this.core.awaited(inspectKey(this.core, key));
  }

  list(options: ListOptions | undefined): Promise<LockList> {
    return this.core.awaited(listPage(this.core, options));
  }

  permits(key: string): Promise<PermitState | null> {
    return this.core.awaited(permitsOf(this.core, key));
  }

  forceUnlock(key: string): Promise<boolean> {
    return this.core.awaited(forceUnlock(this.core, key));
  }

  revoke(key: string): Promise<boolean> {
    return this.core.awaited(revokeKey(this.core, key));
  }

  onRevocationRequested(lease: Lease, listener: RevocationListener): () => void {
    const stops = lease.parts.map(({ hold }) => this.core.revocations.listen(hold, listener));
    return () => stops.forEach((stop) => stop());
  }

  semaphore(key: string): Semaphore {
    return new Semaphore(this.objects, key);
  }

  countDownLatch(key: string): CountDownLatch {
    return new CountDownLatch(this.objects, key);
  }

  held(): HeldLock[] {
    return heldLocks(this.core.keeper.all, this.runtime.now());
  }

  async ping(): Promise<void> {
    await this.core.awaited(this.core.requests.request(undefined, 'pinging it', () => this.store.ping()));
  }

  /** Opens the store, as the start of an app does; see {@link Opening.atStart}. */
  open(): Promise<void> {
    return this.core.opening.atStart();
  }

  get usage(): LockUsage {
    return {
      leases: this.inFlight.count,
      keys: this.core.queues.keyCount + this.objects.size,
      holds: this.core.keeper.size,
      undoing: this.core.undo.size,
    };
  }

  /** Marks the start of the app: until {@link started}, only waiting callers keep the process alive. */
  startsWithApp(): void {
    const starting = new Starting(this.runtime);
    this.core.starting = starting;
    this.core.opening.begin();
    this.started = () => {
      this.core.starting = undefined;
      starting.over();
      this.started = () => undefined;
    };
  }

  started: () => void = () => undefined;

  refuseNew(): void {
    this.shutdown.refuseNew();
  }

  shutDown(): Promise<void> {
    return this.shutdown.run();
  }

  /** Shuts down if that has not happened yet, and closes the store. */
  async close(): Promise<void> {
    await this.shutdown.complete();
    await this.store.close();
  }

  /** Ends a lease. Never throws: failures are logged, and the section keeps its own result. */
  end(lease: Lease): Promise<void> {
    const ended = (): void => this.ended(lease);
    if (lease.ending) return lease.ending.then(ended, ended);
    return (lease.ending = this.core.awaited(this.releasing.endAll(lease.parts))).then(ended);
  }

  private ended(lease: Lease): void {
    // A listener of the loss may end the lease, too, while it is being ended.
    if (lease.detach()) this.inFlight.end();
  }
}

printsOnly(LockManager, ({ place }) => ({ place }));
