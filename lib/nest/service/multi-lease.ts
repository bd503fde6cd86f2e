import type { LockLostError } from '../../core/errors/lock.errors.js';
import { LockKeyError } from '../../core/errors/lock.errors.js';
import type { Lease } from '../../core/lease/lease.js';
import type { LockService } from './lock.service.js';

/** One lock of several that are held together. */
export interface PartOfLease {
  readonly service: LockService;
  readonly key: string;
  readonly lease: Lease;
}

/**
 * Lease on locks of several services; see `withLocks`. It is lost when one of its locks is lost.
 *
 * @example
 * await withLocks([{ service: stock, key: 'sku:7' }, { service: billing, key: 'invoice:42' }], async (lease) => {
 *   await bill(lease.of(billing, 'invoice:42').fencingToken, { signal: lease.signal });
 * });
 */
export class MultiLease {
  private ownSignal: AbortSignal | undefined;

  /** @internal */
  constructor(
    /** In the order in which they were acquired. */
    readonly parts: readonly PartOfLease[],
  ) {}

  /**
   * Returns the lease on one of the keys.
   *
   * @throws LockKeyError for a key that this lease does not have
   */
  of(service: LockService, key: string): Lease {
    const part = this.parts.find((one) => one.service === service && one.key === key);
    if (part) return part.lease;
    const known = this.parts.map((one) => one.lease.shown(one.key)).join(', ');
    // Plain JavaScript may pass something else.
    const isService = typeof (service as Partial<LockService> | undefined)?.shown === 'function';
    const shown = (isService ? service : this.parts[0]!.lease).shown(key);
    throw new LockKeyError(`This lease has no key "${shown}" of that service; it has ${known}.`, {
      key: shown,
    });
  }

  /**
   * Signal that aborts once, when one of the locks is lost; its reason is a `LockLostError`. It never aborts on
   * release.
   */
  get signal(): AbortSignal {
    return (this.ownSignal ??= AbortSignal.any(this.parts.map(({ lease }) => lease.signal)));
  }

  /** True when one of the locks ended before its holder released it. */
  get lost(): boolean {
    return this.loss !== undefined;
  }

  /** Error of the first lost lock, in the order of `parts`; undefined while none is lost. */
  get loss(): LockLostError | undefined {
    for (const { lease } of this.parts) if (lease.loss) return lease.loss;
    return undefined;
  }

  /** Returns what a log may show: the keys as `redactKey` shows them. */
  toJSON(): { keys: readonly string[]; lost: boolean; remainingMs: number } {
    const keys = this.parts.flatMap(({ lease }) => lease.toJSON().keys);
    return { keys, lost: this.lost, remainingMs: this.remainingMs() };
  }

  /** Returns the same for `console.log` and `util.inspect`. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return { MultiLease: this.toJSON() };
  }

  /** Returns how long all locks are certainly still valid, in whole ms; 0 when one is lost, or after the release. */
  remainingMs(): number {
    return this.parts.reduce((least, { lease }) => Math.min(least, lease.remainingMs()), Infinity);
  }
}
