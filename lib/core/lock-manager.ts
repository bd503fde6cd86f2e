import { Acquisition } from './acquire/acquisition.js';
import { InFlight } from './in-flight.js';
import type { LockKind } from './kinds/kinds.js';
import type { KeyState, PermitState } from './seam/reply.js';
import { CoreContext } from './core-context.js';
import { downgradeLease } from './lease/downgrade-lease.js';
import { extendLease, verifyLease } from './lease/extend-lease.js';
import { currentSection, Section, runInSection } from './nesting/section.js';
import type { Hold } from './lease/hold.js';
import { Lease, type LeaseHost } from './lease/lease.js';
import type { LeasePart } from './lease/lease-part.js';
import { isTaken, LockConfigurationError, withStackFromHere } from './errors/lock.errors.js';
import type { LockEventListener, LockEvents, LockLogger } from './lock-events.js';
import type { KeyOfCall } from './settings/acquire-options.js';
import type { LockCall } from './settings/lock-call.js';
import type { LockSettings } from './settings/lock-settings.js';
import type { LockStore } from './seam/lock-store.js';
import { CountDownLatch } from './objects/count-down-latch.js';
import { ObjectContext } from './objects/object-context.js';
import { Semaphore } from './objects/semaphore.js';
import { Releasing, type Ending } from './lease/releasing.js';
import { systemRuntime, type Runtime } from './runtime.js';
import { ServiceGroup } from './service-group.js';
import { Starting } from './starting.js';
import { Shutdown } from './shutdown.js';

/** What runs while the lock is held. */
export type LockSection<T> = (lease: Lease) => T | PromiseLike<T>;

/** Whether a section ran, and what it gave. */
export type Attempt<T> = { readonly ran: true; readonly value: T } | { readonly ran: false };

/** One lock, or one permit, that this process holds. */
export interface HeldLock {
  /** As the caller wrote it, without the prefix. */
  readonly key: string;
  /**
   * the `mode` of a lock (`exclusive`, `fair`, `read`, `write`), `permit` for a
   * permit.
   */
  readonly kind: LockKind;
  /** Undefined with `fencing: false`, and for read locks and permits, which have none. */
  readonly fencingToken: number | undefined;
  /** For how long its present holder has it, in whole ms. */
  readonly heldMs: number;
  /** How long it is certainly still valid, in whole ms, rounded down; a renewal makes it more again. */
  readonly remainingMs: number;
}

/** A lease of a call that wants locks of several services. */
export interface OneOfSeveral {
  readonly lease: Lease;
  /** The locks of the other services are held, too: its fixed lease and its minimum time begin, and `acquired` reports it. */
  readonly allHeld: () => Promise<void>;
}

/** Sizes of all that could grow; zero when nothing is held and nobody waits. */
export interface LockUsage {
  /** Leases that callers have, nested ones too, and callers that wait for one, or for a semaphore or a latch. */
  readonly leases: number;
  /** Keys that callers hold or ask for, those of semaphores and latches included. */
  readonly keys: number;
  /** Locks and permits that are held in the store: what `held()` lists. */
  readonly holds: number;
  /** What is being given back to the store in the background, because nobody owns it any more. */
  readonly undoing: number;
}

/** Acquires, keeps and ends leases, for one service instance on one store. Knows neither Nest nor Redis. */
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
  ) {
    this.core = new CoreContext(store, settings, runtime, logger, group);
    this.core.requests.checkKind('exclusive');
    this.releasing = new Releasing(this.core);
    this.acquisition = new Acquisition(this, this.core, this.releasing);
    this.objects = new ObjectContext(this.core, this.inFlight);
    this.shutdown = new Shutdown(this.core, this.inFlight);
    store.onWarning?.((warning) => this.core.logger.warn(warning));
  }

  on<E extends keyof LockEvents>(event: E, listener: LockEventListener<E>): () => void {
    return this.core.events.on(event, listener);
  }

  now(): number {
    return this.runtime.now();
  }

  newId(): string {
    return this.runtime.newId();
  }

  checkExpiry(hold: Hold): void {
    this.core.keeper.checkExpiry(hold);
  }

  acquire(keys: readonly KeyOfCall[], call: LockCall): Promise<Lease> {
    const startedAt = this.runtime.now();
    this.inFlight.begin();
    // Promises are what this costs beside the store: none is made that is not needed.
    let taking: Promise<LeasePart[]>;
    try {
      taking = this.acquisition.take(keys, startedAt, call);
    } catch (error) {
      taking = Promise.reject(error);
    }
    return this.core.awaited(
      taking.then(
        (parts) => this.granted(parts, startedAt),
        (error: unknown) => this.refused(error, keys, startedAt),
      ),
    );
  }

  /** Acquires a key for a call that wants keys of several services. Unless it is `alone`, its lease is renewed until all are held. */
  async acquireOneOfSeveral(key: string, call: LockCall, alone: boolean): Promise<OneOfSeveral> {
    const startedAt = this.runtime.now();
    const leaseMeanwhile = alone ? call.leaseMs : undefined;
    this.inFlight.begin();
    try {
      const taking = this.acquisition.takeOneOfSeveral(key, startedAt, call, leaseMeanwhile);
      const parts = await this.core.awaited(taking);
      const allHeld = async (): Promise<void> => {
        await this.core.awaited(this.acquisition.allHeld(parts, call, leaseMeanwhile));
        this.releasing.acquired(parts, startedAt);
      };
      return { lease: new Lease(this, parts), allHeld };
    } catch (error) {
      return this.refused(error, [key], startedAt);
    }
  }

  private granted(parts: readonly LeasePart[], startedAt: number): Lease {
    this.releasing.acquired(parts, startedAt);
    return new Lease(this, parts);
  }

  private refused(error: unknown, keys: readonly KeyOfCall[], startedAt: number): never {
    this.inFlight.end();
    if (isTaken(error)) {
      const [first] = keys;
      const { key = typeof first === 'string' ? first : first!.key, waitersAhead, heldAs } = error;
      const waitedMs = Math.round(this.runtime.now() - startedAt);
      this.core.events.emit('busy', () => ({ key, waitedMs, waitersAhead, ...(heldAs && { heldAs }) }));
    }
    throw withStackFromHere(error);
  }

  /** Null when the lock is taken; every other trouble is thrown. */
  async tryAcquire(keys: readonly KeyOfCall[], call: LockCall): Promise<Lease | null> {
    try {
      return await this.acquire(keys, call);
    } catch (error) {
      if (isTaken(error)) return null;
      throw error;
    }
  }

  /** Runs `section` with the lock held, and gives back its result or its error untouched. */
  withLock<T>(keys: readonly KeyOfCall[], call: LockCall, section: LockSection<T>): Promise<T> {
    return this.runUnder(this.acquire(keys, call), call, section);
  }

  /** The same, unless the lock is taken. Every other trouble is thrown. */
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
      return await runInSection(open, section, lease);
    } finally {
      if (!open.close()) await open.emptied();
    }
  }

  /** Opens a section of the lease, inside the one that encloses it. To be closed by the caller. */
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
      // The lease may be over before its section begins, because this process stood still.
      lease.mustBeHeld('run');
      result = await runInSection(open, section, lease);
    } finally {
      if (!open.close()) await open.emptied();
      const ended = this.end(lease);
      if (call.awaitRelease) await ended;
    }
    // A loss that only the release tells of comes too late for who does not wait for that.
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
    return (lease.ending ??= this.core.awaited(this.releaseParts(lease)));
  }

  inspect(key: string): Promise<KeyState | null> {
    const asking = this.core.requests.ask(key, 'inspecting', () =>
      this.store.inspect(this.settings.keyPrefix + key),
    );
    return this.core.awaited(asking);
  }

  async permits(key: string): Promise<PermitState | null> {
    const { store, settings } = this;
    if (!store.permits) throw new LockConfigurationError('This store cannot keep permits.');
    const asking = this.core.requests.ask(key, 'inspecting', () => store.permits!(settings.keyPrefix + key));
    return this.core.awaited(asking);
  }

  async forceUnlock(key: string): Promise<boolean> {
    const finalKey = this.settings.keyPrefix + key;
    const sentAt = this.runtime.now();
    const forced = this.core.forcing(finalKey);
    const unlocking = this.core.requests.ask(key, 'unlocking', () => this.store.forceUnlock(finalKey));
    const ended = await this.core.awaited(unlocking);
    forced();
    for (const hold of this.core.keeper.all) {
      // One that was asked for later came after it, even if both answers are here.
      if (hold.claim.finalKey === finalKey && hold.confirmedFrom <= sentAt) hold.lose('force-unlocked');
    }
    return ended;
  }

  semaphore(key: string): Semaphore {
    return new Semaphore(this.objects, key);
  }

  countDownLatch(key: string): CountDownLatch {
    return new CountDownLatch(this.objects, key);
  }

  held(): HeldLock[] {
    const now = this.runtime.now();
    return this.core.keeper.all.map((hold) => ({
      key: hold.key,
      kind: hold.claim.kind,
      fencingToken: hold.token,
      heldMs: Math.round(now - hold.grantedAt),
      remainingMs: Math.max(0, Math.floor(hold.validUntil - now)),
    }));
  }

  async ping(): Promise<void> {
    await this.core.awaited(this.core.requests.ask(undefined, 'pinging it', () => this.store.ping()));
  }

  /** What endangers locks in the way the store is set up, as sentences for the log. */
  async diagnose(): Promise<readonly string[]> {
    return (await this.store.diagnose?.()) ?? [];
  }

  get usage(): LockUsage {
    return {
      leases: this.inFlight.count,
      keys: this.core.queueCount + this.objects.size,
      holds: this.core.keeper.size,
      undoing: this.core.undo.size,
    };
  }

  /** The app of the service begins to start: until {@link started}, only callers that wait keep the process alive. */
  startsWithApp(): void {
    const starting = new Starting(this.runtime);
    const tellStore = this.store.startsWithApp?.(() => starting.isNeeded);
    this.core.starting = starting;
    this.started = () => {
      this.core.starting = undefined;
      tellStore?.();
      this.started = () => undefined;
    };
  }

  /** The app has started. */
  started: () => void = () => undefined;

  /** See `Shutdown.refuseNew`. */
  refuseNew(): void {
    this.shutdown.refuseNew();
  }

  /** See `Shutdown.run`. */
  shutDown(): Promise<void> {
    return this.shutdown.run();
  }

  /** Shuts down if that has not happened, and closes the store. */
  async close(): Promise<void> {
    await this.shutdown.complete();
    await this.store.close();
  }

  /** Ends a lease and never throws: trouble has been logged, and the section's own result stands. */
  async end(lease: Lease): Promise<void> {
    if (lease.ending) return void (await lease.ending.catch(() => undefined));
    await (lease.ending = this.core.awaited(this.releasing.endAll(lease.parts)));
    this.ended(lease);
  }

  private async releaseParts(lease: Lease): Promise<Ending> {
    try {
      return await this.releasing.releaseAll(lease.parts);
    } finally {
      this.ended(lease);
    }
  }

  private ended(lease: Lease): void {
    // A holder that hears of the loss while the lease is being ended may end it, too.
    if (lease.detach()) this.inFlight.end();
  }
}
