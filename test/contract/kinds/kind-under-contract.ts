import { randomBytes } from 'node:crypto';
import type { LockKind } from '../../../lib/core/kinds/kinds.js';
import type { Claim, PermitClaim } from '../../../lib/core/seam/claim.js';
import type { KindStore } from '../../../lib/core/seam/lock-store.js';
import {
  claimFor,
  HintCounter,
  LONG_LEASE_MS,
  type ContractContext,
  type FullStore,
  type MakeHarness,
} from '../../support/stores/harness.js';

type Overrides = Partial<Pick<Claim, 'owner' | 'leaseMs' | 'tokens' | 'rearms'>>;

/** What the parts of the contract that all kinds share need to know of one. */
export interface KindUnderContract {
  readonly kind: LockKind;
  /** A claim with an owner of its own that lets nobody else in beside it, unless told otherwise. */
  claimFor(key: string, overrides?: Overrides): Claim;
  of(store: FullStore): KindStore;
  hints(store: FullStore, key: string, onHint?: () => void): HintCounter;
  live(store: FullStore, key: string, onHint?: () => void): Promise<HintCounter>;
}

const underContract = (kind: LockKind, make: KindUnderContract['claimFor']): KindUnderContract => ({
  kind,
  claimFor: make,
  of: (store) => store.kinds[kind],
  hints: (store, key, onHint) => new HintCounter(store, make(key), onHint),
  live: (store, key, onHint) => HintCounter.live(store, make(key), onHint),
});

/** A permit's owner that nobody used before. */
export const newPermitOwner = (): string => randomBytes(16).toString('hex');

/** A claim of one of two permits, with an owner of its own and a long lease, unless told otherwise. */
export const permitFor = (key: string, overrides: Partial<PermitClaim> = {}): PermitClaim => ({
  kind: 'permit',
  finalKey: key,
  owner: newPermitOwner(),
  leaseMs: LONG_LEASE_MS,
  tokens: 0,
  waits: false,
  of: 2,
  ...overrides,
});

export const EXCLUSIVE = underContract('exclusive', (key, overrides) => claimFor(key, overrides));
export const PERMIT = underContract('permit', (key, overrides) =>
  permitFor(key, { of: 1, ...overrides, tokens: 0 }),
);

/** What a kind promises, and how to ask for it. */
export interface KindContract {
  readonly under: KindUnderContract;
  describeKind(context: ContractContext, makeHarness: MakeHarness): void;
}
