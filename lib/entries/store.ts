// The interface of a store. Unstable: it may change in a minor version.
export { LockConfigurationError, LockKeyError } from '../core/errors/lock.errors.js';
export { StoreFailure, type StoreOutcome } from '../core/seam/store-failure.js';
export type { QueueEntry, QueueEntryOutcome } from '../core/seam/queue-entry.js';
export { StoreQueueEntry } from '../core/seam/store-queue-entry.js';
export type {
  AllKindStores,
  KindStore,
  KindStores,
  LockStore,
  ReleaseOptions,
  Watch,
  WatchListener,
} from '../core/seam/lock-store.js';
export { EXPIRING, type LeaseModel, type Session } from '../core/seam/lease-model.js';
export type { KindTraits, PollTraits } from '../core/seam/kind-traits.js';
export { StoreHosts } from '../core/seam/store-hosts.js';
export type { AppStart, StoreHost } from '../core/seam/lock-store.js';
export type { ListedKey, ListReply, ListRequest } from '../core/seam/listing.js';
export type { ProcessNotes } from '../core/seam/process-notes.js';
export type { Runtime } from '../core/util/runtime.js';
export type { LatchStore, SemaphoreStore } from '../core/seam/object-stores.js';
export type { LockKind } from '../core/kinds/kinds.js';
export type { Grant } from '../core/seam/grant.js';
export type {
  Claim,
  ClaimOf,
  ExclusiveClaim,
  FairClaim,
  PermitClaim,
  QueueEntryTerms,
  ReadClaim,
  WriteClaim,
} from '../core/seam/claim.js';
export type {
  AcquireReply,
  Blocking,
  ExtendReply,
  HeldAs,
  Holder,
  KeyState,
  PermitState,
  QueueEntryReply,
  Queued,
  ReleaseReply,
  Taken,
} from '../core/seam/reply.js';
