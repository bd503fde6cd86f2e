import type { Claim } from '../../../core/seam/claim.js';
import type { Grant } from '../../../core/seam/grant.js';
import type {
  ExtendReply,
  KeyState,
  QueueEntryReply,
  QueuePosition,
  Taken,
} from '../../../core/seam/reply.js';

import type { Blocker } from './space-clock.js';

/** Reply of a space to an acquire. The store adds the queue entry. */
export type SpaceReply = Grant | Taken | ({ readonly status: 'queued' } & QueuePosition);

/** The holds of one kind in a space. */
export interface KindHolds<C extends Claim = Claim> {
  /** Current number of holds. */
  readonly size: number;
  has(finalKey: string): boolean;
  /** Keys that may have a hold. */
  names(): Iterable<string>;
  acquire(claim: C): SpaceReply;
  extend(claim: C): ExtendReply;
  release(claim: C, keepForMs?: number): boolean;
  inspect(finalKey: string): KeyState | null;
  forceUnlock(finalKey: string): boolean;
  /** Returns the hold that blocks a lock of another kind. Only for locks: permits and locks do not block each other. */
  blocker?(finalKey: string): Blocker | undefined;
  /** See `KindStore.downgrade`. Only for a kind that downgrades to another one. */
  downgrade?(claim: C): ExtendReply;
  /** See `NodeKind.commit`. Only for a kind with tokens. */
  commit?(claim: C, token: number): boolean;
  /** Refreshes a queue entry. Only for kinds with a wait queue. */
  keep?(claim: C): QueueEntryReply;
}
