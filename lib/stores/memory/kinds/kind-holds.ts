import type { Claim } from '../../../core/seam/claim.js';
import type { Grant } from '../../../core/seam/grant.js';
import type { ExtendReply, KeyState, PlaceReply, Standing, Taken } from '../../../core/seam/reply.js';

import type { InTheWay } from './space-clock.js';

/** What a space answers to an acquire; the place of one that waits is its store's affair. */
export type SpaceReply = Grant | Taken | ({ readonly status: 'queued' } & Standing);

/** What a space keeps of one kind. */
export interface KindHolds<C extends Claim = Claim> {
  /** How many holds there are at this moment. */
  readonly size: number;
  has(finalKey: string): boolean;
  acquire(claim: C, deaf?: boolean): SpaceReply;
  extend(claim: C): ExtendReply;
  release(claim: C, keepForMs?: number): boolean;
  inspect(finalKey: string): KeyState | null;
  forceUnlock(finalKey: string): boolean;
  /** Of locks: what keeps a lock of another kind out. Permits and locks of one name do not wait for each other. */
  inTheWay?(finalKey: string): InTheWay | undefined;
  /** Of a kind that becomes another one; see `KindStore.downgrade`. */
  downgrade?(claim: C): ExtendReply;
  /** Of a kind with tokens; see `KindStore.commit`. */
  commit?(claim: C, token: number): boolean;
  /** Of a kind whose waiters stand in line. `deaf`: no message reaches the claim's process. */
  keep?(claim: C, deaf?: boolean): PlaceReply;
}
