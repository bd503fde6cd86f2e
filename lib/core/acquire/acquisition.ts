import type { CoreContext } from '../core-context.js';
import {
  abortedError,
  lostError,
  notReentrantError,
  storeError,
  takenError,
  selfDeadlockError,
} from '../errors/error-messages.js';
import { isTaken } from '../errors/lock.errors.js';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';
import { LeasePart } from '../lease/lease-part.js';
import type { Releasing } from '../lease/releasing.js';
import { enclosingEntry } from '../nesting/nested-entry.js';
import { LockOrder } from '../nesting/lock-order.js';
import { isNested, kindAround } from '../nesting/section.js';
import type { KeyOfCall } from '../settings/acquire-options.js';
import type { LockCall } from '../settings/lock-call.js';
import { invalidOption } from '../settings/option-checks.js';
import { waitFor } from '../wait-for.js';
import { contend } from './contend.js';
import { eachOnce } from './keys-of-call.js';
import { LimitLog } from './limit-log.js';
import type { Concurrent, LocalQueue } from './local-queue.js';
import { SeveralKeys } from './several-keys.js';
import { deadlineOf, type Wait } from './wait.js';
import { mayShare, type HoldTerms, type WantedHold } from './wanted-hold.js';

/** A key of one call, and its name in the store. */
interface NamedKey {
  readonly key: string;
  readonly finalKey: string;
}

/** Ends a call with its error. `key`: the key of several that was refused, as the caller wrote it. */
export type Refused = (error: unknown, key?: string) => Promise<never>;

/** What the waits for all keys of one call share. */
type WaitOfAll = Omit<Wait, 'key' | 'kind'>;

const partOf = (hold: Hold, { key, finalKey }: NamedKey, label: string): LeasePart =>
  new LeasePart(key, finalKey, hold, undefined, label);

/** Acquires one or several keys for a caller: all or none. */
export class Acquisition implements HoldTerms {
  readonly whenLost: (hold: Hold) => void;
  readonly limitChanged: LimitLog['changed'];
  private readonly several: SeveralKeys;
  private readonly order: LockOrder;

  constructor(
    private readonly scope: object,
    private readonly core: CoreContext,
    private readonly releasing: Releasing,
  ) {
    this.several = new SeveralKeys(core);
    this.whenLost = releasing.whenLost;
    this.limitChanged = new LimitLog(core.logger, core.shown).changed;
    this.order = new LockOrder(scope, core.logger, core.shown);
  }

  /**
   * Acquires the keys of a call, and resolves with the result of `granted` or `refused`. An error that needs no request to
   * the store is thrown at once for one key, and rejected otherwise.
   */
  take<T>(
    keys: readonly KeyOfCall[],
    startedAt: number,
    call: LockCall,
    granted: (parts: readonly LeasePart[]) => T,
    refused: Refused,
  ): Promise<T> {
    const { signal, label } = call;
    const waitMs = this.core.waitCap.of(call.waitMs);
    const nested = isNested(this.core.group);
    const [first] = keys;
    if (nested || keys.length !== 1 || typeof first !== 'string') {
      const wait = { startedAt, waitMs, signal, nested, label };
      return this.takeSeveral(keys, wait, call, refused).then(granted);
    }
    // Most calls are this one. Promises are the main cost beside the store, so there is no needless one.
    const only = this.withName(first);
    const wait = { key: first, startedAt, waitMs, signal, nested, kind: call.kind, label };
    return this.takeHold(wait, only.finalKey, call, call.leaseMs).then(
      (hold) => granted(this.complete([partOf(hold, only, label)], call)),
      (error: unknown) => refused(error),
    );
  }

  /**
   * Takes one key of a call that wants keys of several services, with a lease for the time until {@link allHeld}:
   * undefined renews it.
   */
  takeOneOfSeveral(
    key: string,
    startedAt: number,
    call: LockCall,
    leaseMeanwhile: number | undefined,
  ): Promise<LeasePart[]> {
    const { signal, label } = call;
    const waitMs = this.core.waitCap.of(call.waitMs);
    const wait = { startedAt, waitMs, signal, nested: isNested(this.core.group), label };
    return this.takeInto([], this.withName(key), wait, call, leaseMeanwhile);
  }

  /** All keys that a call wants together are taken: its fixed lease and its minimum time begin. */
  async allHeld(
    parts: readonly LeasePart[],
    call: LockCall,
    leaseMeanwhile: number | undefined,
  ): Promise<readonly LeasePart[]> {
    if (leaseMeanwhile !== call.leaseMs) await this.several.fixLeases(parts, call.leaseMs!);
    this.several.throwIfLost(parts);
    return this.complete(parts, call);
  }

  /** All is taken: the minimum time and the maximum time begin. A nested call has no maximum of its own. */
  private complete(
    parts: readonly LeasePart[],
    { holdAtLeastMs, maxHoldMs }: LockCall,
  ): readonly LeasePart[] {
    if (holdAtLeastMs === 0 && maxHoldMs === Infinity) return parts;
    const now = this.core.runtime.now();
    for (const { hold, entry } of parts) {
      if (holdAtLeastMs > 0) hold.keepAtLeastUntil(now + holdAtLeastMs);
      if (entry || maxHoldMs === Infinity) continue;
      hold.limitTo(now + maxHoldMs);
      this.core.keeper.schedule(hold);
    }
    return parts;
  }

  /** One after the other by code units: everybody takes the same keys in the same order. */
  private async takeSeveral(
    keys: readonly KeyOfCall[],
    wait: WaitOfAll,
    call: LockCall,
    refused: Refused,
  ): Promise<readonly LeasePart[]> {
    const parts: LeasePart[] = [];
    let current: string | undefined;
    try {
      const once = eachOnce(keys, call, this.core.shown);
      const all = once.map(({ key, kind }) => ({ ...this.withName(key), kind }));
      // While other keys are still to be acquired, the watchdog renews the acquired ones.
      const leaseMeanwhile = all.length === 1 ? call.leaseMs : undefined;
      for (const one of all) {
        current = one.key;
        const requested = one.kind === call.kind ? call : { ...call, kind: one.kind };
        await this.takeInto(parts, one, wait, requested, leaseMeanwhile);
      }
      return await this.allHeld(parts, call, leaseMeanwhile);
    } catch (error) {
      // The caller's waitMs is used up: it does not wait for the releases as well. A shutdown does.
      this.core.undo.track(Promise.all(parts.reverse().map((part) => this.releasing.endPart(part))));
      return refused(error, current);
    }
  }

  private withName(key: string): NamedKey {
    const finalKey = this.core.finalKey(key);
    return {
      key,
      finalKey: this.core.settings.excludes ? finalKey : `${finalKey} ${this.core.nextOwner('exclusive')}`,
    };
  }

  /** Takes one key and adds it to the parts: an entry into an enclosing section, or a hold of its own. */
  private async takeInto(
    parts: LeasePart[],
    { key, finalKey }: NamedKey,
    waitOfAll: WaitOfAll,
    call: LockCall,
    leaseMs: number | undefined,
  ): Promise<LeasePart[]> {
    const wait: Wait = { key, kind: call.kind, ...waitOfAll };
    for (let entry; wait.nested && (entry = enclosingEntry(this.scope, call.kind, finalKey));) {
      const { part: outer } = entry;
      this.throwIfAborted(wait);
      if (!call.reentrant) throw notReentrantError(this.core.shown(key));
      this.core.keeper.checkExpiry(outer.hold);
      // The work around this call has no right any more: going on under a new lock would hide that.
      if (outer.state === 'lost') {
        throw lostError(
          this.core.shown(key),
          outer.hold.claim,
          outer.lossReason,
          this.core.runtime.now() - outer.hold.grantedAt,
        );
      }
      this.checkMinimum(outer.hold, call.holdAtLeastMs);
      const part = await entry.enter(wait, this.core);
      if (!part) continue;
      parts.push(part);
      return parts;
    }
    if (wait.nested) this.throwIfForItself(key, finalKey, call.kind);
    if (wait.nested && this.core.settings.excludes) this.order.check(key, finalKey, call);
    parts.push(partOf(await this.takeHold(wait, finalKey, call, leaseMs), { key, finalKey }, call.label));
    return parts;
  }

  /** What would wait for a section around it is refused at once, however long it may wait. */
  private throwIfForItself(key: string, finalKey: string, kind: LockKind): void {
    const around = kindAround(this.scope, finalKey, kindOf(kind).selfDeadlockIn);
    if (around) throw selfDeadlockError(this.core.shown(key), kind, around);
  }

  /** A minimum that is longer than a fixed lease has left would end with that. */
  private checkMinimum({ watchdogMs, validUntil }: Hold, holdAtLeastMs: number): void {
    if (holdAtLeastMs === 0 || watchdogMs !== undefined) return;
    const leftMs = Math.floor(validUntil - this.core.runtime.now());
    if (holdAtLeastMs <= leftMs) return;
    invalidOption(
      'holdAtLeastMs',
      `at most what is left of the fixed lease around it, ${leftMs} ms`,
      holdAtLeastMs,
    );
  }

  private throwIfAborted({ key, signal, startedAt }: Wait): void {
    if (signal?.aborted)
      throw abortedError(this.core.shown(key), signal, this.core.runtime.now() - startedAt);
  }

  private takeHold(
    wait: Wait,
    finalKey: string,
    call: LockCall,
    leaseMs: number | undefined,
    storeReplied = false,
  ): Promise<Hold> {
    const { core } = this;
    const over = core.reasonToStop(wait);
    if (over) throw over;
    core.requests.checkCall(call);
    const queue = core.queue(call.kind, finalKey, wait.key);
    const watchdogMs = leaseMs === undefined ? call.watchdogMs : undefined;
    const wanted: WantedHold = { finalKey, call, leaseMs, watchdogMs };
    const shares = mayShare(call);
    const shared = shares ? queue.join(call.watchdogMs) : undefined;
    if (shared) return Promise.resolve(shared);
    if (queue.enter()) return this.request(contend(core, queue, wait, wanted, this, true), wait);
    if (queue.held && core.outages.storeFails && !storeReplied) {
      const again = (): Promise<Hold> => this.takeHold(wait, finalKey, call, leaseMs, true);
      return this.request(this.ifStoreReplies(queue.held, wait).then(again), wait);
    }
    // A caller that can join the contender's shared hold sends no request.
    const concurrent = shares ? undefined : queue.beginConcurrent(wait, call.permits);
    return concurrent
      ? this.request(this.contendConcurrently(queue, concurrent, wait, wanted), wait)
      : this.waitInQueue(queue, wait, wanted);
  }

  /**
   * While the store fails, a caller does not queue behind a holder of its process for long. Its own request finds out whether
   * the store fails still: to extend the hold by nothing. If its wait is over by then, the key was taken, and no second request
   * follows.
   */
  private async ifStoreReplies(hold: Hold, wait: Wait): Promise<void> {
    const { requests, runtime, shown } = this.core;
    hold.inStore.holdersRequest('sent', runtime.now(), 1);
    const over = (): void => hold.inStore.holdersRequest('over', runtime.now(), 1);
    try {
      const [reply] = await requests.extendMany([{ ...hold.claim, leaseMs: 1, tokens: 0 }]).finally(over);
      if (reply?.status === 'failed') throw reply.cause;
      if (reply?.status === 'lost') hold.lose(reply.intruder ? 'entered' : 'refused');
      requests.replied();
    } catch (failure) {
      requests.failed(failure);
      throw storeError(shown(wait.key), failure, 'acquiring', runtime.now() - wait.startedAt, 'not-executed');
    }
    const now = runtime.now();
    if (now >= deadlineOf(wait)) throw takenError(shown(wait.key), now - wait.startedAt, wait.waitMs);
  }

  private request(contention: Promise<Hold>, wait: Wait): Promise<Hold> {
    return wait.signal ? this.unlessAborted(contention, wait, wait.signal) : contention;
  }

  private waitInQueue(
    queue: LocalQueue,
    wait: Wait,
    wanted: WantedHold,
    concurrent?: Concurrent,
  ): Promise<Hold> {
    const { core } = this;
    const { call, watchdogMs } = wanted;
    const inherits = call.holdAtLeastMs === 0 && (!kindOf(call.kind).shared || mayShare(call));
    return queue
      .untilContender(wait, inherits ? watchdogMs : undefined, concurrent)
      .then(
        (passed) =>
          (passed && this.inherit(passed, wait)) ??
          this.request(contend(core, queue, wait, wanted, this, true), wait),
      );
  }

  /** A caller that is refused beside the contender lines up, in the place that it has, if it has time left. */
  private async contendConcurrently(
    queue: LocalQueue,
    concurrent: Concurrent,
    wait: Wait,
    wanted: WantedHold,
  ): Promise<Hold> {
    const { core } = this;
    try {
      const hold = await contend(core, queue, wait, wanted, this, false);
      queue.endConcurrent(concurrent);
      return hold;
    } catch (error) {
      if (isTaken(error) && core.runtime.now() < deadlineOf(wait) && !core.reasonToStop(wait)) {
        return this.waitInQueue(queue, wait, wanted, concurrent);
      }
      queue.endConcurrent(concurrent);
      throw error;
    }
  }

  /** Takes a hold that was passed on; undefined when it was lost on its way. Throws when it comes too late for its caller. */
  private inherit(hold: Hold, wait: Wait): Hold | undefined {
    const { core } = this;
    core.keeper.checkExpiry(hold);
    const over = hold.state === 'held' ? core.reasonToStop(wait) : undefined;
    if (hold.state === 'held' && !over) {
      // From here on it has a holder. When its hold ends, the next caller becomes the contender.
      hold.heldWith(this.whenLost);
      return hold;
    }
    if (this.releasing.releaseUnused(hold)) core.keeper.remove(hold);
    if (over) throw over;
    return undefined;
  }

  /** An aborted caller goes at once; what its request still brings is given back. */
  private unlessAborted(contention: Promise<Hold>, wait: Wait, signal: AbortSignal): Promise<Hold> {
    const { core } = this;
    return waitFor<Hold>(core.runtime, {
      ms: Infinity,
      signal,
      listen: ({ resolve, reject }) => void contention.then(resolve, reject),
      onTime: () => undefined,
      onAbort: ({ reject }) => {
        // Only a shutdown waits for it still.
        core.undo.track(
          contention.then(
            (hold) => this.releasing.releaseUnused(hold),
            () => undefined,
          ),
        );
        reject(abortedError(core.shown(wait.key), signal, core.runtime.now() - wait.startedAt));
      },
    });
  }
}
