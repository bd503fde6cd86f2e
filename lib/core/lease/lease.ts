import { lostError } from '../errors/error-messages.js';
import type { Hold } from './hold.js';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { LeasePart } from './lease-part.js';
import type { RevocationListener } from './revocations.js';
import {
  LockConfigurationError,
  LockKeyError,
  withLabel,
  type LockLostError,
} from '../errors/lock.errors.js';
import { formatValue } from '../util/describe.js';
import { invalidOption } from '../settings/option-checks.js';
import { callInside } from '../nesting/callable-inside.js';
import type { SiblingQueue } from '../nesting/sibling-queue.js';
import type { ShownKey } from '../util/shown-key.js';

/** Methods of the service that a lease calls. */
export interface LeaseHost {
  now(): number;
  newId(): string;
  checkExpiry(hold: Hold): void;
  whyNoToken(kind: LockKind): string;
  shown(key: string): ShownKey;
  extend(lease: Lease, ms: number): Promise<void>;
  verify(lease: Lease): Promise<boolean>;
  onRevocationRequested(lease: Lease, listener: RevocationListener): () => void;
  downgrade(lease: Lease): Promise<void>;
  release(lease: Lease): Promise<'released' | 'lost'>;
  end(lease: Lease): Promise<void>;
  runSection<T>(lease: Lease, section: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
}

const NOTHING: readonly (() => void)[] = [];
const NONE: readonly Lease[] = [];

/**
 * A caller's time-limited right to one or several keys.
 *
 * @example
 * await using lease = await locks.acquire('report');
 * await upload(report, { signal: lease.signal, fence: lease.fencingToken });
 */
export class Lease implements AsyncDisposable {
  // Private fields: otherwise a log that prints a lease would show the whole service and its connection.
  readonly #host: LeaseHost;
  readonly #parts: readonly LeasePart[];
  /** @internal Set once its end has begun. */
  ending: Promise<'released' | 'lost'> | undefined;
  #outer: readonly Lease[];
  private isClosed = false;
  private over = false;
  private lossSignal: AbortController | undefined;
  private lossCause: LockLostError | undefined;
  private uniqueId: string | undefined;
  private ownKeys: readonly string[] | undefined;
  private stopListening: readonly (() => void)[] = NOTHING;

  /** @internal Leases come from `acquire`, `tryAcquire` and `withLock`. */
  constructor(host: LeaseHost, parts: readonly LeasePart[], inside: readonly Lease[] = NONE) {
    this.#host = host;
    this.#parts = parts;
    this.#outer = inside;
  }

  /** @internal Unlike `instanceof`, it is false for a Proxy of a lease, which cannot prove a call, and never throws. */
  static isLease(value: unknown): value is Lease {
    return typeof value === 'object' && value !== null && #parts in value;
  }

  /** Keys as the caller wrote them, without duplicates, in the order in which they were acquired. */
  get keys(): readonly string[] {
    return (this.ownKeys ??= this.#parts.map((part) => part.key));
  }

  /** The key; of several keys, the first. */
  get key(): string {
    return this.#parts[0]!.key;
  }

  /** Unique name of this lease, for logs. */
  get id(): string {
    return (this.uniqueId ??= this.#host.newId());
  }

  /**
   * Fencing token: greater than the token of every earlier holder of the key. Pass it to the resource, and let the
   * resource reject smaller tokens (`WHERE fence <= $token`).
   *
   * @throws LockConfigurationError with several keys (use {@link tokenFor}), with `fencing: false`, and for read locks
   * and permits, which have no token
   */
  get fencingToken(): number {
    return this.tokenFor(this.#onlyKey('a token for each', 'tokenFor'));
  }

  /**
   * Returns the fencing token of one of the keys.
   *
   * @throws LockKeyError for a key that this lease does not have
   * @throws LockConfigurationError with `fencing: false`, and for read locks and permits, which have no token
   */
  tokenFor(key: string): number {
    const { token, claim } = this.#partFor(key).hold;
    if (token === undefined) {
      const why = this.#host.whyNoToken(claim.kind);
      const shown = this.shown(key);
      throw new LockConfigurationError(`There is no fencing token for "${shown}": ${why}.`, { key: shown });
    }
    return token;
  }

  /**
   * Owner in the store, as `inspect()` shows it. Leases that hand a hold off to each other have the same owner.
   *
   * @throws LockConfigurationError with several keys: use {@link ownerOf}
   */
  get owner(): string {
    return this.ownerOf(this.#onlyKey('an owner for each', 'ownerOf'));
  }

  /**
   * Returns the owner of one of the keys.
   *
   * @throws LockKeyError for a key that this lease does not have
   */
  ownerOf(key: string): string {
    return this.#partFor(key).hold.owner;
  }

  /**
   * Returns the nodes that granted the key; empty for a store with a single node. With several keys, pass one.
   *
   * @throws LockKeyError for a key that this lease does not have
   */
  grantedBy(key: string = this.#onlyKey('nodes for each', 'grantedBy')): readonly string[] {
    return this.#partFor(key).hold.grantedBy ?? [];
  }

  /** Signal that aborts once, when the lease is lost; its reason is a `LockLostError`. It never aborts on release. */
  get signal(): AbortSignal {
    if (!this.lossSignal) {
      const controller = (this.lossSignal = new AbortController());
      const abort = (): void => controller.abort(this.loss);
      if (!this.over) this.#untilEnd(...this.#parts.map((part) => part.onLoss(abort)));
      if (this.lost) abort();
    }
    return this.lossSignal.signal;
  }

  /** True when the lease ended before its holder released it. */
  get lost(): boolean {
    for (const part of this.#parts) {
      this.#host.checkExpiry(part.hold);
      if (part.state === 'lost') return true;
    }
    return false;
  }

  /** Error of the loss; undefined while the lease is not lost. */
  get loss(): LockLostError | undefined {
    if (this.lossCause) return this.lossCause;
    if (!this.lost) return undefined;
    const { key, hold, label, lossReason } = this.#parts.find((part) => part.state === 'lost')!;
    const heldMs = this.#host.now() - hold.grantedAt;
    return (this.lossCause = withLabel(lostError(this.shown(key), hold.claim, lossReason, heldMs), label));
  }

  /** Returns how long the lease is certainly still valid, in whole ms, rounded down; 0 when it is lost or released. */
  remainingMs(): number {
    if (this.lost) return 0;
    let until = Infinity;
    for (const { state, hold } of this.#parts) {
      if (state !== 'held') return 0;
      until = Math.min(until, hold.validUntil);
    }
    return Math.max(0, Math.floor(until - this.#host.now()));
  }

  /**
   * Extends the lease to at least `ms` from now: whole ms, from 1 ms to 366 days. It never shortens the lease.
   *
   * @throws LockConfigurationError for an invalid `ms`, and after the release
   * @throws LockLostError when the lease is lost
   * @throws LockStoreError when the store fails
   *
   * @example await lease.extend(60_000); // a step that may take a minute, under a fixed leaseMs
   */
  extend(ms: number): Promise<void> {
    return this.#host.extend(this, ms);
  }

  /**
   * Asks the store whether it still has the hold. Resolves with true, or with false, and then the lease is lost.
   *
   * @throws LockStoreError when the store fails
   * @throws LockConfigurationError after the release
   *
   * @example if (!(await lease.verify())) return; // before a step that cannot be taken back
   */
  verify(): Promise<boolean> {
    return this.#host.verify(this);
  }

  /**
   * Calls the listener when another client asks for a lock of this lease: `LockService.revoke`, or Curator's `Revoker`.
   * It is called once for each key, and at once if that came before. The lease stays valid, and its signal does not
   * abort: save your work, then release. Returns a function that removes the listener; the end of the lease does so, too.
   *
   * @throws LockConfigurationError when the store cannot ask (ZooKeeper and the memory store can), and after the release
   * @throws LockLostError when the lease is lost
   *
   * @example lease.onRevocationRequested(({ key }) => batch.stopSoon(key));
   */
  onRevocationRequested(listener: RevocationListener): () => void {
    this.mustBeHeld('onRevocationRequested');
    const stop = this.#host.onRevocationRequested(this, listener);
    this.#untilEnd(stop);
    return stop;
  }

  /**
   * Downgrades a write lock to a read lock, in one step: no other writer gets in between, and other readers may now
   * share it. Afterwards the lease has no fencing token, and its work may only read.
   *
   * @throws LockConfigurationError for any other lock, inside another lock of the caller on the same key, while nested
   * calls are running, and after the release
   * @throws LockLostError when the lease is lost
   * @throws LockStoreError when the store fails. The lease then counts as a read lock, while the store may still have a
   * write lock; you may call it again.
   *
   * @example await lease.downgrade(); // all is written; now others may read along
   */
  downgrade(): Promise<void> {
    return this.#host.downgrade(this);
  }

  /**
   * Calls a method with `@Locked` as a nested call. For the keys of this lease, and of the leases that it is nested in, the
   * call sends no request to the store. Other keys are acquired. Nested calls of one key run one after the other, and the
   * section of this lease ends after them. After the release of this lease, the method is an ordinary caller. Use `withLock`
   * with `inside` for a method with overloads.
   *
   * The method fails with `LockLostError` if this lease is lost, and with `LOCK_NOT_REENTRANT` if its mode cannot nest or
   * it has `oncePerMs`.
   *
   * @param self object of the method, which may also inherit it (`super.check`); of several wrappers on one method, the
   * outermost enters
   * @throws LockConfigurationError for a function that is not a method of `self` with `@Locked`, for `@Limited`, and on
   * the lease of a permit
   *
   * @example await currentLease().call(this, this.check, id);
   */
  call<S, A extends unknown[], R>(self: S, method: (this: S, ...args: A) => R, ...args: A): R {
    this.mustTakeNested('lease.call');
    return callInside(this, self, method, args) as R;
  }

  /**
   * Runs `section` with this lease as its `currentLease()`. Calls for its keys in it are ordinary callers: see {@link call}.
   * Does not release the lease, and does not run `section` when the lease has ended.
   *
   * @throws LockLostError when the lease is lost
   * @throws LockConfigurationError after the release
   *
   * @example const total = await lease.run(() => this.sumOf(order));
   */
  async run<T>(section: (lease: Lease) => T | PromiseLike<T>): Promise<T> {
    this.mustBeHeld('run');
    if (typeof section !== 'function') invalidOption('The section of lease.run', 'a function', section);
    return this.#host.runSection(this, section);
  }

  /**
   * Releases the lease. Resolves with `lost` if it had ended before. Idempotent: further calls give the same result.
   *
   * @throws LockStoreError when the store fails; the library retries until the lease ends
   */
  release(): Promise<'released' | 'lost'> {
    return this.#host.release(this);
  }

  /** Releases the lease, and never throws: a failed release is logged and retried. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#host.end(this);
  }

  /** Returns what a log may show: the id, the keys (as `redactKey` shows them), and the state. */
  toJSON(): { id: string; keys: readonly string[]; lost: boolean; remainingMs: number } {
    return { id: this.id, keys: this.#shownKeys, lost: this.lost, remainingMs: this.remainingMs() };
  }

  /** Returns the same for `console.log` and `util.inspect`. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return { Lease: this.toJSON() };
  }

  /** @internal Throws when the lease has ended: `LockLostError`, or `LockConfigurationError` after the release. */
  mustBeHeld(what: 'downgrade' | 'extend' | 'onRevocationRequested' | 'run' | 'verify'): void {
    const { loss } = this;
    if (loss) throw loss;
    if (this.#parts.every(({ state }) => state === 'held')) return;
    const key = this.shown(this.key);
    throw new LockConfigurationError(
      `lease.${what} was called after the release of "${key}": acquire it again.`,
      { key },
    );
  }

  /**
   * @internal The section has succeeded: keeps the keys until the window ends, which began at their grants. A call that
   * fails with its loss is no success.
   */
  succeeded({ oncePerMs, onLost }: { oncePerMs: number | undefined; onLost: 'event' | 'throw' }): void {
    if (oncePerMs === undefined || (onLost === 'throw' && this.lost)) return;
    for (const { hold } of this.#parts) hold.keepAtLeastUntil(hold.grantedAt + oncePerMs);
  }

  /** @internal Returns a key as errors and logs show it. */
  shown(key: string): ShownKey {
    return this.#host.shown(key);
  }

  get #shownKeys(): readonly ShownKey[] {
    return this.#parts.map((part) => this.shown(part.key));
  }

  /** @internal */
  get parts(): readonly LeasePart[] {
    return this.#parts;
  }

  /** @internal */
  isOf(host: object): boolean {
    return this.#host === host;
  }

  /** @internal Whether it has ended, and was not lost: a call that it proves is an ordinary caller. */
  get hasEnded(): boolean {
    return this.isClosed && !this.#parts.some(({ state }) => state === 'lost');
  }

  /**
   * @internal Leases that this one was proven inside of. The leases around an ended one take its place, so chains do not
   * grow without limit.
   */
  get outer(): readonly Lease[] {
    if (!this.#outer.some(({ hasEnded }) => hasEnded)) return this.#outer;
    const outer: Lease[] = [];
    // A set is iterated with what is added meanwhile.
    const visited = new Set(this.#outer);
    for (const lease of visited) {
      if (lease.hasEnded) for (const around of lease.#outer) visited.add(around);
      else outer.push(lease);
    }
    return (this.#outer = outer);
  }

  /** @internal Throws for the lease of a permit, which takes no nested calls. */
  mustTakeNested(what: string): void {
    if (this.#parts.every(({ hold }) => kindOf(hold.claim.kind).reentrantInto.length > 0)) return;
    const key = this.shown(this.key);
    throw new LockConfigurationError(
      `${what} takes the lease of a lock, and "${key}" is a permit, which does not nest: take it once, in the outer call.`,
      { key },
    );
  }

  /** @internal Queue of nested calls that is in use; undefined if no nested call is inside or waits. */
  get entered(): SiblingQueue | undefined {
    for (const { siblings } of this.#parts) if (siblings?.inUse) return siblings;
    return undefined;
  }

  /** @internal Takes no further nested calls. */
  close(): void {
    this.isClosed = true;
  }

  /** @internal Stops listening for losses when the lease has ended. Returns true for the first call. */
  detach(): boolean {
    const first = !this.over;
    this.over = true;
    this.close();
    for (const stop of this.stopListening) stop();
    this.stopListening = NOTHING;
    return first;
  }

  #untilEnd(...stops: readonly (() => void)[]): void {
    this.stopListening = [...this.stopListening, ...stops];
  }

  #onlyKey(has: string, instead: string): string {
    if (this.#parts.length === 1) return this.key;
    throw new LockConfigurationError(
      `A lease on several keys has ${has}: use ${instead}(key) with one of ${this.#shownKeys.join(', ')}.`,
    );
  }

  #partFor(key: string): LeasePart {
    const part = this.#parts.find((candidate) => candidate.key === key);
    if (part) return part;
    const asked = typeof key === 'string' ? this.shown(key) : key;
    throw new LockKeyError(
      `This lease has no key ${formatValue(asked)}; it has ${this.#shownKeys.join(', ')}.`,
      {
        key: asked,
      },
    );
  }
}
