import { randomBytes } from 'node:crypto';
import type { LockKind } from '../../../lib/core/kinds/kinds.js';
import type { Claim, FairClaim, PermitClaim, ReadClaim, WriteClaim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply } from '../../../lib/core/seam/reply.js';
import type { KindStore } from '../../../lib/core/seam/lock-store.js';
import {
  claimFor,
  WakeUpCounter,
  LONG_LEASE_MS,
  newOwner,
  newProcess,
  type ContractContext,
  type FullStore,
  type MakeHarness,
} from '../../support/stores/harness.js';

type Overrides = Partial<Pick<Claim, 'owner' | 'leaseMs' | 'tokens' | 'reacquires'>>;

/** What the parts of the contract that all kinds share need to know of one. */
export interface KindUnderContract {
  readonly kind: LockKind;
  /** The store has the order in which waiters come in, so it need not tell of others that wait. */
  readonly ordered: boolean;
  /** A claim with its own owner. By default it excludes all others, except a claim of readers. */
  claimFor(key: string, overrides?: Overrides): Claim;
  /** A claim with its own owner that the holder of such a claim excludes. */
  rivalFor(key: string): Claim;
  of(store: FullStore): KindStore;
  /** Sends the request of a caller that the holder of such a claim excludes. */
  refused(store: FullStore, key: string): Promise<AcquireReply>;
  wakeUps(store: FullStore, key: string, onWakeUp?: () => void): WakeUpCounter;
  live(store: FullStore, key: string, onWakeUp?: () => void): Promise<WakeUpCounter>;
}

const underContract = (
  kind: LockKind,
  ordered: boolean,
  make: KindUnderContract['claimFor'],
  rival: KindUnderContract['claimFor'] = make,
): KindUnderContract => ({
  kind,
  ordered,
  claimFor: make,
  rivalFor: rival,
  of: (store) => store.kinds[kind],
  refused: (store, key) => {
    const claim = rival(key);
    const rivals: KindStore = store.kinds[claim.kind];
    const hasQueue = !rivals.watch && !rivals.traits?.poll;
    return rivals.acquire(hasQueue ? { ...claim, waits: false } : claim);
  },
  wakeUps: (store, key, onWakeUp) => new WakeUpCounter(store, make(key), onWakeUp),
  live: (store, key, onWakeUp) => WakeUpCounter.live(store, make(key), onWakeUp),
});

/** Returns a new owner of a permit. */
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

/** A claim with an owner of its own and a long lease, which does not wait unless told otherwise. */
export const fairFor = (key: string, overrides: Partial<FairClaim> = {}): FairClaim => ({
  ...claimFor(key),
  kind: 'fair',
  owner: `${newProcess()}:fair:1`,
  entryTerms: undefined,
  ...overrides,
});

/** The same of an owner that waits. */
export const fairWaiter = (key: string, overrides: Partial<FairClaim> = {}): FairClaim =>
  fairFor(key, {
    waits: true,
    entryTerms: { aliveMs: 5_000, provisionalLeaseMs: 10_000, tokens: 1 },
    ...overrides,
  });

/** A claim to read, with an owner of its own and a long lease, unless told otherwise. */
export const readFor = (key: string, overrides: Partial<ReadClaim> = {}): ReadClaim => ({
  kind: 'read',
  finalKey: key,
  owner: newOwner(),
  leaseMs: LONG_LEASE_MS,
  tokens: 0,
  waits: false,
  ...overrides,
});

/** The same to write, with a fencing token. */
export const writeFor = (key: string, overrides: Partial<WriteClaim> = {}): WriteClaim => ({
  kind: 'write',
  finalKey: key,
  owner: newOwner(),
  leaseMs: LONG_LEASE_MS,
  tokens: 1,
  waits: false,
  ...overrides,
});

export const EXCLUSIVE = underContract('exclusive', true, (key, overrides) => claimFor(key, overrides));
export const FAIR = underContract('fair', true, (key, overrides) => fairFor(key, overrides));
export const PERMIT = underContract(
  'permit',
  false,
  (key, overrides) => permitFor(key, { of: 1, ...overrides, tokens: 0 }),
  (key) => permitFor(key, { of: 1, waits: true }),
);

export const READ = underContract(
  'read',
  true,
  (key, overrides) => readFor(key, { ...overrides, tokens: 0 }),
  (key) => writeFor(key),
);
export const WRITE = underContract('write', true, (key, overrides) => writeFor(key, overrides));

/** What a kind promises, and how to ask for it. */
export interface KindContract {
  readonly under: KindUnderContract;
  describeKind(context: ContractContext, makeHarness: MakeHarness): void;
}
