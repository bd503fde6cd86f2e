import type { CoreContext } from '../context/core-context.js';
import { abortedError, lostError, notReentrantError, selfDeadlockError } from '../errors/error-messages.js';
import type { Hold } from '../lease/hold.js';
import { LeasePart } from '../lease/lease-part.js';
import type { Releasing } from '../lease/releasing.js';
import { HeldAround } from '../nesting/held-around.js';
import { LockOrder } from '../nesting/lock-order.js';
import { enterPart, mayEnter, provenPart } from '../nesting/proven-part.js';
import { isNested } from '../nesting/section.js';
import type { KeyOfCall } from '../settings/acquire-options.js';
import type { LockCall } from '../settings/lock-call.js';
import { invalidOption } from '../settings/option-checks.js';
import { eachOnce } from './keys-of-call.js';
import { OneKey } from './one-key.js';
import { SeveralKeys } from './several-keys.js';
import type { Wait } from '../wait/wait.js';

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
export class Acquisition {
  private readonly one: OneKey;
  private readonly several: SeveralKeys;
  private readonly order: LockOrder;
  private readonly heldAround: HeldAround;

  constructor(
    private readonly scope: object,
    private readonly core: CoreContext,
    private readonly releasing: Releasing,
  ) {
    this.one = new OneKey(core, releasing);
    this.several = new SeveralKeys(core);
    this.order = new LockOrder(scope, core.logger, core.shown);
    this.heldAround = new HeldAround(scope, core.logger, core.shown);
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
    const nested = this.isNested(call);
    const [first] = keys;
    if (nested || call.inside.length > 0 || keys.length !== 1 || typeof first !== 'string') {
      const wait = { startedAt, waitMs, signal, nested, label };
      return this.takeSeveral(keys, wait, call, refused).then(granted);
    }
    // Most calls are this one. Promises are the main cost beside the store, so there is no needless one.
    const only = this.withName(first);
    const wait = { key: first, startedAt, waitMs, signal, nested, kind: call.kind, label };
    return this.one.take(wait, only.finalKey, call, call.leaseMs).then(
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
    const wait = { startedAt, waitMs, signal, nested: this.isNested(call), label };
    return this.takeInto([], this.withName(key), wait, call, leaseMeanwhile);
  }

  /** Returns whether a call belongs to running work: it is proven inside of a lease, or runs inside a section. */
  private isNested({ inside }: LockCall): boolean {
    return inside.some((lease) => lease.isOf(this.scope) && !lease.hasEnded) || isNested(this.core.group);
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
    for (const { hold, outer } of parts) {
      if (holdAtLeastMs > 0) hold.keepAtLeastUntil(now + holdAtLeastMs);
      if (outer || maxHoldMs === Infinity) continue;
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

  /** Takes one key and adds it to the parts: an entry into an outer lease, or a hold of its own. */
  private async takeInto(
    parts: LeasePart[],
    named: NamedKey,
    waitOfAll: WaitOfAll,
    call: LockCall,
    leaseMs: number | undefined,
  ): Promise<LeasePart[]> {
    const { key, finalKey } = named;
    const wait: Wait = { key, kind: call.kind, ...waitOfAll };
    let around: LeasePart | undefined;
    try {
      for (let outer; (outer = provenPart(call.inside, this.scope, key));) {
        this.checkEntry(outer, wait, call);
        around = wait.nested ? this.heldAround.check(key, call, outer) : undefined;
        const part = await enterPart(outer, wait, this.core);
        if (!part) continue;
        parts.push(part);
        return parts;
      }
      around = wait.nested ? this.heldAround.check(key, call) : undefined;
      if (wait.nested && this.core.settings.excludes) this.order.check(key, finalKey);
      parts.push(partOf(await this.one.take(wait, finalKey, call, leaseMs), named, call.label));
      return parts;
    } catch (error) {
      throw this.heldAround.explain(error, around, call);
    }
  }

  /** Throws when a call may not enter the lease that it is proven inside of. */
  private checkEntry(outer: LeasePart, wait: Wait, { kind, oncePerMs, holdAtLeastMs }: LockCall): void {
    const { hold } = outer;
    const { keeper, runtime, shown } = this.core;
    this.throwIfAborted(wait);
    if (oncePerMs !== undefined) throw notReentrantError(shown(wait.key));
    keeper.checkExpiry(hold);
    // The work around this call has no right any more: going on under a new lock would hide that.
    if (outer.state === 'lost') {
      throw lostError(shown(wait.key), hold.claim, outer.lossReason, runtime.now() - hold.grantedAt);
    }
    if (!mayEnter(kind, outer)) throw selfDeadlockError(shown(wait.key), kind, hold.claim.kind);
    this.checkMinimum(hold, holdAtLeastMs);
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
}
