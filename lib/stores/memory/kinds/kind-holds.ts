import type { Claim } from '../../../core/seam/claim.js';
import type { Grant } from '../../../core/seam/grant.js';
import type {
  ExtendReply,
  KeyState,
  QueueEntryReply,
  QueuePosition,
  Taken,
} from '../../../core/seam/reply.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import { proposedOr, type Proposal } from '../../proposed-token.js';
import type { Blocker, SpaceClock } from './space-clock.js';

/** Reply of a space to an acquire. The store adds the queue entry. */
export type SpaceReply = Grant | Taken | ({ readonly status: 'queued' } & QueuePosition);

/** The holds of one kind in a space. */
export interface KindHolds<C extends Claim = Claim> {
  /** Current number of holds. */
  readonly size: number;
  has(finalKey: string): boolean;
  /** Keys that may have a hold or waiters. */
  names(): Iterable<string>;
  acquire(claim: C): SpaceReply;
  extend(claim: C): ExtendReply;
  release(claim: C, keepForMs?: number): boolean;
  /** Returns also a key that has only waiters. */
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

/** The fencing tokens of a memory space. */
export class Tokens {
  // One series for all keys: it grows for each of them, and needs no memory per key.
  private last = 0;
  /** Last tokens of keys with a per-key counter. A counter never ends, whatever becomes of the holds. */
  private readonly counters = new Map<string, number>();

  constructor(private readonly clock: SpaceClock) {}

  /** Makes all later tokens larger than this one. */
  raise({ finalKey, perKeyCounter }: Claim, token: number): void {
    if (perKeyCounter) this.counters.set(finalKey, Math.max(this.counters.get(finalKey) ?? 0, token));
    else this.last = Math.max(this.last, token);
  }

  /** Reserves the tokens that the claim asks for, which are consecutive, and returns the first. */
  reserve(claim: Claim & Proposal): number {
    const { finalKey, tokens, perKeyCounter } = claim;
    const first = perKeyCounter
      ? (this.counters.get(finalKey) ?? 0) + 1
      : Math.max(this.last + 1, proposedOr(Math.floor(this.clock.wallClockMicros()), claim));
    // Without the brackets the sum could exceed the exact integers and come back rounded.
    const last = first + (tokens - 1);
    if (!Number.isSafeInteger(last)) {
      throw new StoreFailure(
        `No fencing token can be given: ${String(last)} is not an exact integer. ` +
          'The wall clock of the memory store is far in the future, or does not answer a number.',
        'not-executed',
      );
    }
    if (perKeyCounter) this.counters.set(finalKey, last);
    else this.last = last;
    return first;
  }
}
