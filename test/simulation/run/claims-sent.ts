import type { LockKind } from '../../../lib/core/kinds/kinds.js';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { KindStore, LockStore } from '../../../lib/core/seam/lock-store.js';

/** What all processes have asked their stores for. */
export class ClaimsSent {
  /** The longest lease that each owner asked for, in ms. */
  readonly leaseMs = new Map<string, number>();
  /** Owners whose hold is to stay for a minimum time after its release. */
  readonly kept = new Set<string>();

  note({ owner, leaseMs }: Claim): void {
    this.leaseMs.set(owner, Math.max(leaseMs, this.leaseMs.get(owner) ?? 0));
  }
}

/** Returns the same store, which notes the claims that go through it. */
export const withClaimsNoted = (store: LockStore, claims: ClaimsSent): LockStore => {
  const noting = (kind: KindStore): KindStore =>
    Object.assign(Object.create(kind) as KindStore, {
      acquire: (claim: Claim) => {
        claims.note(claim);
        return kind.acquire(claim);
      },
      extendMany: (all: readonly Claim[]) => {
        all.forEach((claim) => claims.note(claim));
        return kind.extendMany(all);
      },
      release: (...[claim, how]: Parameters<KindStore['release']>) => {
        if (how?.keepForMs !== undefined) claims.kept.add(claim.owner);
        return kind.release(claim, how);
      },
    });
  const kinds = Object.entries(store.kinds) as [LockKind, KindStore][];
  return Object.create(store, {
    kinds: { value: Object.fromEntries(kinds.map(([name, kind]) => [name, noting(kind)])) },
  }) as LockStore;
};
