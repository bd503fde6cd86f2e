import { lostError } from '../errors/error-messages.js';
import type { Hold } from './hold.js';
import { kindOf } from '../kinds/kinds.js';
import type { LeasePart } from './lease-part.js';
import { LockConfigurationError, LockKeyError, type LockLostError } from '../errors/lock.errors.js';
import { shown } from '../errors/describe.js';

/** What a lease needs of the service that made it. */
export interface LeaseHost {
  now(): number;
  newId(): string;
  checkExpiry(hold: Hold): void;
  extend(lease: Lease, ms: number): Promise<void>;
  verify(lease: Lease): Promise<boolean>;
  downgrade(lease: Lease): Promise<void>;
  release(lease: Lease): Promise<'released' | 'lost'>;
  end(lease: Lease): Promise<void>;
  runSection<T>(lease: Lease, section: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
}

const NOTHING: readonly (() => void)[] = [];

/**
 * A caller's time-limited right to one or several keys.
 *
 * @example
 * await using lease = await locks.acquire('report');
 * await upload(report, { signal: lease.signal, fence: lease.fencingToken });
 */
export class Lease implements AsyncDisposable {
  // Really private: a log that prints or serializes a lease would show the whole service through them, and its connection.
  readonly #host: LeaseHost;
  readonly #parts: readonly LeasePart[];
  /** @internal Set once its end has begun. */
  ending: Promise<'released' | 'lost'> | undefined;
  private over = false;
  private lossSignal: AbortController | undefined;
  private lossCause: LockLostError | undefined;
  private uniqueId: string | undefined;
  private ownKeys: readonly string[] | undefined;
  private stopListening: readonly (() => void)[] = NOTHING;

  /** @internal Leases come from `acquire`, `tryAcquire` and `withLock`. */
  constructor(host: LeaseHost, parts: readonly LeasePart[]) {
    this.#host = host;
    this.#parts = parts;
  }

  /** As the caller wrote them, without duplicates, in the order in which they were taken. */
  get keys(): readonly string[] {
    return (this.ownKeys ??= this.#parts.map((part) => part.key));
  }

  /** The key; of several, the first. */
  get key(): string {
    return this.#parts[0]!.key;
  }

  /** Names this lease in logs; every lease has its own. */
  get id(): string {
    return (this.uniqueId ??= this.#host.newId());
  }

  /**
   * Greater than the token of every earlier holder of the key. Hand it to the resource, and let that refuse
   * smaller ones (`WHERE fence <= $token`). Throws `LockConfigurationError` with several keys (use
   * {@link tokenFor}), when fencing is off, and for read locks and permits, which have none.
   */
  get fencingToken(): number {
    return this.tokenFor(this.#onlyKey('a token for each', 'tokenFor'));
  }

  /** The fencing token of one of the keys. Throws `LockKeyError` for a key that the lease does not have. */
  tokenFor(key: string): number {
    const { token, claim } = this.#partFor(key).hold;
    if (token === undefined) {
      const { fenced, noun } = kindOf(claim.kind);
      const why = fenced ? 'fencing is off' : `several may hold a ${noun} at once, in no order`;
      throw new LockConfigurationError(`There is no fencing token for "${key}": ${why}.`, { key });
    }
    return token;
  }

  /**
   * The owner in the store, as `inspect()` shows it; leases that have the hold one after the other share it. Throws
   * `LockConfigurationError` with several keys: use {@link ownerOf}.
   */
  get owner(): string {
    return this.ownerOf(this.#onlyKey('an owner for each', 'ownerOf'));
  }

  /** The owner of one of the keys. Throws `LockKeyError` for a key that the lease does not have. */
  ownerOf(key: string): string {
    return this.#partFor(key).hold.owner;
  }

  /**
   * The nodes that gave the key, where the store has several of them; empty with one. Of several keys name one. Throws
   * `LockKeyError` for a key that the lease does not have.
   */
  grantedBy(key: string = this.#onlyKey('nodes for each', 'grantedBy')): readonly string[] {
    return this.#partFor(key).hold.grantedBy ?? [];
  }

  /** Aborts once, when the lease is lost; its reason is a `LockLostError`. It never aborts on release. */
  get signal(): AbortSignal {
    if (!this.lossSignal) {
      const controller = (this.lossSignal = new AbortController());
      const abort = (): void => controller.abort(this.loss);
      if (!this.over) this.stopListening = this.#parts.map((part) => part.onLoss(abort));
      if (this.lost) abort();
    }
    return this.lossSignal.signal;
  }

  /** True once the lease has ended before its holder released it. */
  get lost(): boolean {
    for (const part of this.#parts) {
      this.#host.checkExpiry(part.hold);
      if (part.state === 'lost') return true;
    }
    return false;
  }

  /** The error that tells of the loss; undefined while the lease is not lost. */
  get loss(): LockLostError | undefined {
    if (this.lossCause) return this.lossCause;
    if (!this.lost) return undefined;
    const { key, hold, lossReason } = this.#parts.find((part) => part.state === 'lost')!;
    return (this.lossCause = lostError(key, hold.claim, lossReason, this.#host.now() - hold.grantedAt));
  }

  /** How long the lease is certainly still valid, in whole ms, rounded down; 0 when it is lost or released. */
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
   * Makes the lease last at least `ms` from now: whole ms from 1 to 366 days. It never gets shorter. Rejects with
   * `LockConfigurationError` for another `ms` and after its release, with `LockLostError` when it is lost, with
   * `LockStoreError` when the store fails.
   *
   * @example await lease.extend(60_000); // a step that may take a minute, under a fixed leaseMs
   */
  extend(ms: number): Promise<void> {
    return this.#host.extend(this, ms);
  }

  /**
   * Asks the store whether it still has the hold: true, or false, and then the lease is lost. Rejects with
   * `LockStoreError` when the store cannot be asked, and with `LockConfigurationError` after its release.
   *
   * @example if (!(await lease.verify())) return; // before a step that cannot be taken back
   */
  verify(): Promise<boolean> {
    return this.#host.verify(this);
  }

  /**
   * Makes a read lock of a write lock, in one step: nobody writes in between, and other readers go in beside it. From
   * then on the lease has no fencing token, and what it runs may only read. Rejects with `LockConfigurationError` for
   * any other lock, within a lock of the caller on the same key, while nested calls are inside, and after the release;
   * with `LockLostError` when it is lost; with `LockStoreError` when the store fails: then it counts as a read lock here,
   * while others may still find it a write lock, and calling it again is fine.
   *
   * @example await lease.downgrade(); // all is written; now others may read along
   */
  downgrade(): Promise<void> {
    return this.#host.downgrade(this);
  }

  /**
   * Runs `section` inside this lease: nested locks on its keys go in without asking the store, and
   * `currentLease()` finds it. It does not release. Rejects without running when the lease is over already:
   * with `LockLostError`, or after a release with `LockConfigurationError`.
   *
   * @example const total = await lease.run(() => this.sumOf(order));
   */
  async run<T>(section: (lease: Lease) => T | PromiseLike<T>): Promise<T> {
    this.mustBeHeld('run');
    return this.#host.runSection(this, section);
  }

  /**
   * Ends the lease. Calling it again changes nothing and gives the same answer. `lost`: it had ended before.
   * Rejects with `LockStoreError` only; the library then goes on trying until the lease is over.
   */
  release(): Promise<'released' | 'lost'> {
    return this.#host.release(this);
  }

  /** Releases, and never throws: a failure has been logged, and is tried again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#host.end(this);
  }

  /** What of it can be told to a log: which lease, on what, and whether it is still good. */
  toJSON(): { id: string; keys: readonly string[]; lost: boolean; remainingMs: number } {
    return { id: this.id, keys: this.keys, lost: this.lost, remainingMs: this.remainingMs() };
  }

  /** The same for `console.log` and `util.inspect`. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return { Lease: this.toJSON() };
  }

  /** @internal Throws when the lease is over: `LockLostError`, or after a release `LockConfigurationError`. */
  mustBeHeld(what: 'downgrade' | 'extend' | 'run' | 'verify'): void {
    const { loss } = this;
    if (loss) throw loss;
    if (this.#parts.every(({ state }) => state === 'held')) return;
    throw new LockConfigurationError(
      `lease.${what} was called after the release of "${this.key}": acquire it again.`,
      { key: this.key },
    );
  }

  /** @internal */
  get parts(): readonly LeasePart[] {
    return this.#parts;
  }

  /** @internal It ended: losses of an enclosing hold do not concern it any more. True the first time. */
  detach(): boolean {
    const first = !this.over;
    this.over = true;
    for (const stop of this.stopListening) stop();
    this.stopListening = NOTHING;
    return first;
  }

  #onlyKey(has: string, instead: string): string {
    if (this.#parts.length === 1) return this.key;
    throw new LockConfigurationError(
      `A lease on several keys has ${has}: use ${instead}(key) with one of ${this.keys.join(', ')}.`,
    );
  }

  #partFor(key: string): LeasePart {
    const part = this.#parts.find((candidate) => candidate.key === key);
    if (part) return part;
    throw new LockKeyError(`This lease has no key ${shown(key)}; it has ${this.keys.join(', ')}.`, { key });
  }
}
