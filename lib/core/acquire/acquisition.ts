import { onAbort } from '../abort-listeners.js';
import type { LockKind } from '../seam/claim.js';
import { contend, reasonToStop, type WantedHold } from './contend.js';
import type { CoreContext } from '../core-context.js';
import {
  abortedError,
  endlessOutOfOrderError,
  lostError,
  notReentrantError,
  queueFullError,
  storeError,
} from '../errors/error-messages.js';
import { enclosingPlace, heldAfter, isNested } from '../nesting/section.js';
import type { Hold } from '../lease/hold.js';
import type { Wait } from './local-queue.js';
import { LeasePart } from '../lease/lease-part.js';
import { LockKeyError } from '../errors/lock.errors.js';
import { StoreFailure } from '../seam/lock-store.js';
import type { LockCall } from '../settings/lock-settings.js';
import { refuse } from '../settings/option-checks.js';
import type { Releasing } from '../lease/releasing.js';

const KIND: LockKind = 'exclusive';

interface Wanted {
  readonly key: string;
  readonly finalKey: string;
}

/** A wait, but for the key. */
type WaitOfAll = Omit<Wait, 'key'>;

const partOf = (hold: Hold, { key, finalKey }: Wanted): LeasePart =>
  new LeasePart(key, finalKey, hold, undefined);

/** Takes one or several keys for a caller: all or none. */
export class Acquisition {
  private warnedOfOrder = false;

  constructor(
    private readonly scope: object,
    private readonly core: CoreContext,
    private readonly releasing: Releasing,
  ) {}

  /** Throws at once what can be said without asking anybody. */
  take(keys: readonly string[], startedAt: number, call: LockCall): Promise<LeasePart[]> {
    const { waitMs, signal } = call;
    const wait = { startedAt, waitMs, signal, nested: isNested(this.scope) };
    if (keys.length !== 1) return this.takeSeveral(this.inOrder(keys), wait, call);
    const wanted = this.wanted(keys[0]!);
    if (wait.nested) {
      return this.takeInto([], wanted, wait, call, call.leaseMs).then((parts) => this.complete(parts, call));
    }
    // What nearly everybody asks for takes no step that it does not need.
    const hold = this.takeHold({ key: wanted.key, ...wait }, wanted.finalKey, call, call.leaseMs);
    return hold.then((taken) => this.complete([partOf(taken, wanted)], call));
  }

  /** All is taken: the minimum time begins. */
  private complete(parts: LeasePart[], { holdAtLeastMs }: LockCall): LeasePart[] {
    if (holdAtLeastMs === 0) return parts;
    const until = this.core.runtime.now() + holdAtLeastMs;
    for (const { hold } of parts) hold.keepAtLeastUntil(until);
    return parts;
  }

  private async takeSeveral(
    wanted: readonly Wanted[],
    wait: WaitOfAll,
    call: LockCall,
  ): Promise<LeasePart[]> {
    const parts: LeasePart[] = [];
    // While others are still to come, those already taken must not run out: the watchdog keeps them all.
    const watched = wanted.length === 1 ? call.leaseMs : undefined;
    try {
      for (const one of wanted) await this.takeInto(parts, one, wait, call, watched);
      if (watched !== call.leaseMs) await this.fixLeases(parts, call.leaseMs!);
      this.throwIfLost(parts);
    } catch (error) {
      // The wait is over, also for the answers to this.
      this.core.settler.include(Promise.all(parts.reverse().map((part) => this.releasing.endPart(part))));
      throw error;
    }
    return this.complete(parts, call);
  }

  /** Without duplicates, by code units: everybody takes the same keys in the same order. */
  private inOrder(keys: readonly string[]): Wanted[] {
    if (keys.length === 0) throw new LockKeyError('There is no key to lock: the list of keys is empty.');
    return [...new Set(keys)].sort().map((key) => this.wanted(key));
  }

  private wanted(key: string): Wanted {
    const { store, settings } = this.core;
    const finalKey = settings.keyPrefix + key;
    store.checkKey?.(finalKey);
    return { key, finalKey: settings.excludes ? finalKey : `${finalKey} ${this.core.nextOwner()}` };
  }

  /** Takes one key and adds it to the parts: a place in an enclosing section, or a hold of its own. */
  private async takeInto(
    parts: LeasePart[],
    { key, finalKey }: Wanted,
    waitOfAll: WaitOfAll,
    call: LockCall,
    leaseMs: number | undefined,
  ): Promise<LeasePart[]> {
    const wait: Wait = { key, ...waitOfAll };
    for (let place; wait.nested && (place = enclosingPlace(this.scope, KIND, finalKey));) {
      const { part: outer } = place;
      this.throwIfAborted(wait);
      if (!call.reentrant) throw notReentrantError(key);
      this.core.keeper.checkExpiry(outer.hold);
      // The work around this call has no right any more: going on under a new lock would hide that.
      if (outer.state === 'lost') throw lostError(key, outer.lossReason, this.heldMs(outer.hold));
      this.checkMinimum(outer.hold, call.holdAtLeastMs);
      const part = await place.enter(wait, this.core.keeper, this.core.runtime);
      if (!part) continue;
      parts.push(part);
      return parts;
    }
    if (wait.nested && this.core.settings.excludes) this.checkOrder(key, finalKey, wait.waitMs);
    parts.push(partOf(await this.takeHold(wait, finalKey, call, leaseMs), { key, finalKey }));
    return parts;
  }

  /** A minimum that is longer than a fixed lease has left would end with that. */
  private checkMinimum({ watchdogMs, validUntil }: Hold, holdAtLeastMs: number): void {
    if (holdAtLeastMs === 0 || watchdogMs !== undefined) return;
    const leftMs = Math.floor(validUntil - this.core.runtime.now());
    if (holdAtLeastMs <= leftMs) return;
    refuse('holdAtLeastMs', `at most what is left of the fixed lease around it, ${leftMs} ms`, holdAtLeastMs);
  }

  private throwIfAborted({ key, signal, startedAt }: Wait): void {
    if (signal?.aborted) throw abortedError(key, signal, this.core.runtime.now() - startedAt);
  }

  private heldMs(hold: Hold): number {
    return this.core.runtime.now() - hold.grantedAt;
  }

  private takeHold(wait: Wait, finalKey: string, call: LockCall, leaseMs: number | undefined): Promise<Hold> {
    const { core } = this;
    const { settings } = core;
    const { key, signal } = wait;
    this.throwIfAborted(wait);
    const refused = core.refusal(wait);
    if (refused) throw refused;
    const queue = core.queue(KIND, finalKey);
    const watchdogMs = leaseMs === undefined ? call.watchdogMs : undefined;
    const wanted: WantedHold = {
      kind: KIND,
      finalKey,
      leaseMs: Math.max(leaseMs ?? call.watchdogMs, call.holdAtLeastMs),
      watchdogMs,
      whenLost: this.releasing.whenLost,
    };
    const itsTurn = (): Promise<Hold> => {
      const contention = contend(core, queue, wait, wanted);
      return signal ? this.unlessAborted(contention, wait, signal) : contention;
    };
    if (queue.enter()) return itsTurn();
    if (queue.length >= settings.maxWaiters) throw queueFullError(key, settings.maxWaiters);
    return queue
      .queue(wait, call.holdAtLeastMs === 0 ? watchdogMs : undefined)
      .then((passed) => (passed ? this.inherit(passed, wait, itsTurn) : itsTurn()));
  }

  /** Takes a hold that was passed on, unless it was lost on its way, or has come too late for its caller. */
  private inherit(hold: Hold, wait: Wait, itsTurn: () => Promise<Hold>): Hold | Promise<Hold> {
    const { core } = this;
    core.keeper.checkExpiry(hold);
    const over = hold.state === 'held' ? reasonToStop(core, wait) : undefined;
    if (hold.state === 'held' && !over) {
      // From here on it has a holder, who gives up the turn with it.
      hold.whenLost = this.releasing.whenLost;
      return hold;
    }
    this.releasing.giveBack(hold);
    core.keeper.remove(hold);
    if (over) throw over;
    return itsTurn();
  }

  /** An aborted caller goes at once; what its request still brings is given back. */
  private unlessAborted(contention: Promise<Hold>, wait: Wait, signal: AbortSignal): Promise<Hold> {
    return new Promise((resolve, reject) => {
      let gone = false;
      const stopListening = onAbort(signal, () => {
        gone = true;
        // Nobody waits for it any more but a shutdown.
        this.core.settler.include(
          contention.then(
            () => undefined,
            () => undefined,
          ),
        );
        reject(abortedError(wait.key, signal, this.core.runtime.now() - wait.startedAt));
      });
      contention.then(
        (hold) => {
          stopListening();
          if (!gone) return resolve(hold);
          this.releasing.giveBack(hold);
        },
        (error: Error) => {
          stopListening();
          reject(error);
        },
      );
    });
  }

  /** Gives holds that were taken one after the other the fixed lease that was asked for, all from now on. */
  private async fixLeases(parts: LeasePart[], leaseMs: number): Promise<void> {
    const own = parts.filter(({ place }) => !place).map(({ hold }) => hold);
    const sentAt = this.core.runtime.now();
    await Promise.all(
      own.map(async (hold) => {
        // A renewal after this would lengthen it again.
        hold.watchdogMs = undefined;
        // The owner's own hold is re-armed, also to a shorter time; that brings a new token.
        const claim = { ...hold.claim, leaseMs, rearms: true };
        const reply = await this.core.store.acquire(claim).catch((failure: unknown) => {
          this.core.health.failed(failure);
          if (failure instanceof StoreFailure && failure.outcome === 'unknown') {
            this.core.settler.settle(claim, failure, this.core.runtime.now() + leaseMs);
          }
          throw storeError(hold.key, failure, 'setting the lease of', this.core.runtime.now() - sentAt);
        });
        if (reply.status === 'taken' || hold.state !== 'held') {
          // What was lost and came back with this answer is nobody's.
          if (reply.status === 'granted') {
            this.core.settler.settle(claim, undefined, this.core.runtime.now() + leaseMs);
          }
          hold.lose('refused');
          throw lostError(hold.key, hold.lossReason ?? 'refused', this.core.runtime.now() - hold.grantedAt);
        }
        hold.claim = claim;
        hold.token = reply.token;
        hold.confirm(sentAt, reply.validForMs);
        hold.mayLast(this.core.runtime.now() + reply.validForMs);
        this.core.keeper.watch(hold);
      }),
    );
  }

  /** The first may be gone by the time the last is there. */
  private throwIfLost(parts: readonly LeasePart[]): void {
    for (const part of parts) {
      this.core.keeper.checkExpiry(part.hold);
      if (part.state === 'lost') throw lostError(part.key, part.lossReason, this.heldMs(part.hold));
    }
  }

  /** Nested locks in another order than everybody else's can deadlock across callers: never wait there for ever. */
  private checkOrder(key: string, finalKey: string, waitMs: number): void {
    const held = heldAfter(this.scope, finalKey);
    if (held === undefined) return;
    if (waitMs === Infinity) throw endlessOutOfOrderError(key, held);
    if (this.warnedOfOrder) return;
    this.warnedOfOrder = true;
    this.core.logger.warn(
      `"${key}" is taken while "${held}" is held. Where others take them the other way round, both wait until ` +
        `waitMs is over. Take both at once, or nest them in ascending order. (Said once.)`,
    );
  }
}
