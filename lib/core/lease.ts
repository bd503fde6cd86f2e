import { lostError } from './failures.js';
import type { Gate } from './gate.js';
import type { Hold } from './hold.js';
import { LockConfigurationError, LockKeyError, type LockLostError } from './lock.errors.js';
import { shown } from './shown.js';

/** One key of a lease: its own hold, or a place in the section of an enclosing one. */
export interface LeasePart {
  /** As the caller wrote it. */
  readonly key: string;
  readonly finalKey: string;
  readonly hold: Hold;
  /** Set when an enclosing section holds the key; releasing then only leaves the place. */
  readonly place: { leave(): void } | undefined;
  /** Where calls nested in this lease enter; made by the first of them. */
  gate?: Gate;
}

/** What a lease needs of the service that made it. */
export interface LeaseHost {
  now(): number;
  newId(): string;
  checkExpiry(hold: Hold): void;
  extend(lease: Lease, ms: number): Promise<void>;
  release(lease: Lease): Promise<'released' | 'lost'>;
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
  /** @internal Set once its end has begun. */
  ending: Promise<'released' | 'lost'> | undefined;
  private lossSignal: AbortController | undefined;
  private lossCause: LockLostError | undefined;
  private uniqueId: string | undefined;
  private ownKeys: readonly string[] | undefined;
  private stopListening: readonly (() => void)[] = NOTHING;

  /** @internal Leases come from `acquire`, `tryAcquire` and `withLock`. */
  constructor(
    private readonly host: LeaseHost,
    /** @internal */
    readonly parts: readonly LeasePart[],
  ) {}

  /** As the caller wrote them, without duplicates, in the order in which they were taken. */
  get keys(): readonly string[] {
    return (this.ownKeys ??= this.parts.map((part) => part.key));
  }

  /** The key; of several, the first. */
  get key(): string {
    return this.parts[0]!.key;
  }

  /** Names this lease in logs; every lease has its own. */
  get id(): string {
    return (this.uniqueId ??= this.host.newId());
  }

  /**
   * Greater than the token of every earlier holder of the key. Hand it to the resource, and let that refuse
   * smaller ones (`WHERE fence <= $token`). Throws `LockConfigurationError` with several keys (use
   * {@link tokenFor}) and when fencing is off.
   */
  get fencingToken(): number {
    if (this.parts.length > 1) {
      throw new LockConfigurationError(
        `A lease on several keys has a token for each: use tokenFor(key) with one of ${this.keys.join(', ')}.`,
      );
    }
    return this.tokenFor(this.key);
  }

  /** The fencing token of one of the keys. Throws `LockKeyError` for a key that the lease does not have. */
  tokenFor(key: string): number {
    const part = this.parts.find((candidate) => candidate.key === key);
    if (!part)
      throw new LockKeyError(`This lease has no key ${shown(key)}; it has ${this.keys.join(', ')}.`, { key });
    if (part.hold.token === undefined) {
      throw new LockConfigurationError(`There is no fencing token for "${key}": fencing is off.`, { key });
    }
    return part.hold.token;
  }

  /** Aborts once, when the lease is lost; its reason is a `LockLostError`. It never aborts on release. */
  get signal(): AbortSignal {
    if (!this.lossSignal) {
      const controller = (this.lossSignal = new AbortController());
      const abort = (): void => controller.abort(this.loss);
      this.stopListening = this.parts.map(({ hold }) => hold.onLoss(abort));
      if (this.lost) abort();
    }
    return this.lossSignal.signal;
  }

  /** True once the lease has ended before its holder released it. */
  get lost(): boolean {
    for (const { hold } of this.parts) {
      this.host.checkExpiry(hold);
      if (hold.state === 'lost') return true;
    }
    return false;
  }

  /** The error that tells of the loss; undefined while the lease is not lost. */
  get loss(): LockLostError | undefined {
    if (this.lossCause) return this.lossCause;
    if (!this.lost) return undefined;
    const { key, hold } = this.parts.find((part) => part.hold.state === 'lost')!;
    return (this.lossCause = lostError(key, hold.lossReason!, this.host.now() - hold.grantedAt));
  }

  /** How long the lease is certainly still valid, in ms; 0 when it is lost or released. */
  remainingMs(): number {
    if (this.lost) return 0;
    let until = Infinity;
    for (const { hold } of this.parts) {
      if (hold.state !== 'held') return 0;
      until = Math.min(until, hold.validUntil);
    }
    return Math.max(0, until - this.host.now());
  }

  /**
   * Makes the lease last at least `ms` from now; it never gets shorter. Throws `LockLostError` when it is lost
   * already, `LockStoreError` when the store fails.
   */
  extend(ms: number): Promise<void> {
    return this.host.extend(this, ms);
  }

  /**
   * Runs `section` inside this lease: nested locks on its keys go in without asking the store, and
   * `currentLease()` finds it. It does not release. Rejects without running when the lease is over already:
   * with `LockLostError`, or after a release with `LockConfigurationError`.
   */
  async run<T>(section: (lease: Lease) => T | PromiseLike<T>): Promise<T> {
    if (this.loss) throw this.loss;
    if (this.parts.some(({ hold }) => hold.state !== 'held')) {
      throw new LockConfigurationError(
        `lease.run was called after the release of "${this.key}": acquire it again.`,
        { key: this.key },
      );
    }
    return this.host.runSection(this, section);
  }

  /**
   * Ends the lease. Calling it again changes nothing and gives the same answer. `lost`: it had ended before.
   * Rejects with `LockStoreError` only; the library then goes on trying until the lease is over.
   */
  release(): Promise<'released' | 'lost'> {
    return this.host.release(this);
  }

  /** Releases, and never throws: a failure has been logged, and is tried again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined);
  }

  /** @internal It ended: losses of an enclosing hold do not concern it any more. */
  detach(): void {
    for (const stop of this.stopListening) stop();
    this.stopListening = NOTHING;
  }
}
