import type { LockLostError } from '../core/errors/lock.errors.js';
import { LockKeyError } from '../core/errors/lock.errors.js';
import type { Lease } from '../core/lease/lease.js';
import type { LockService } from '../lock.service.js';

/** One lock of several that are held together. */
export interface PartOfLease {
  readonly service: LockService;
  readonly key: string;
  readonly lease: Lease;
}

/**
 * What a caller has while it holds locks of several services; see `withLocks`. It is lost when one of them is.
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
    /** In the order in which they were taken. */
    readonly parts: readonly PartOfLease[],
  ) {}

  /** The lease on one of the keys. Throws `LockKeyError` for one that was not taken. */
  of(service: LockService, key: string): Lease {
    const part = this.parts.find((one) => one.service === service && one.key === key);
    if (part) return part.lease;
    const known = this.parts.map((one) => one.key).join(', ');
    throw new LockKeyError(`This lease has no key "${key}" of that service; it has ${known}.`, { key });
  }

  /** Aborts once, when one of the locks is lost; its reason is a `LockLostError`. It never aborts on release. */
  get signal(): AbortSignal {
    return (this.ownSignal ??= AbortSignal.any(this.parts.map(({ lease }) => lease.signal)));
  }

  /** True once one of the locks has ended before its holder released it. */
  get lost(): boolean {
    return this.loss !== undefined;
  }

  /** The error that tells of the first loss in order; undefined while none is lost. */
  get loss(): LockLostError | undefined {
    for (const { lease } of this.parts) if (lease.loss) return lease.loss;
    return undefined;
  }

  /** How long all of them are certainly still valid, in whole ms; 0 when one is lost, or they are released. */
  remainingMs(): number {
    return this.parts.reduce((least, { lease }) => Math.min(least, lease.remainingMs()), Infinity);
  }
}
