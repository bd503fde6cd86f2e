import { formatValue } from '../../../core/util/describe.js';
import type { Runtime } from '../../../core/util/runtime.js';
import type { Claim } from '../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../core/seam/lock-store.js';
import type {
  AcquireReply,
  Blocking,
  ExtendReply,
  QueueEntryReply,
  QueuePosition,
  ReleaseReply,
} from '../../../core/seam/reply.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import { isWrongType } from '../connection/redis-failure.js';
import type { NodeKind } from '../quorum/node-store.js';

/**
 * Range of the pause before another look at a string, in ms. Its end is not announced, and its holder may delete it at
 * any time. The pause is random, because several processes may look.
 */
const MIN_LOOK_MS = 50;
const MAX_LOOK_MS = 500;

/** Returns what users should know about a prefix: most libraries write none. */
export const onlyWith = (prefix: string): string =>
  `foreignHold: 'taken' looks only at names that begin with ${formatValue(prefix)} (keyPrefix). A lock of another library with ` +
  "another name excludes no caller. If its names have no prefix, set keyPrefix: ''.";

/** A claim whose request also tells about a string. Other requests reply with an error when they find a string. */
export interface AtStrings {
  readonly countsStrings?: boolean;
}

/** Returns the last argument of a script, for claims that want to know about strings. */
export const stringsArg = ({ countsStrings }: AtStrings): readonly number[] => (countsStrings ? [1] : []);

/** Returns the reply about a blocking string. `leftMs` is -1 for a string without an expiry. */
export const byString = (leftMs: number): Blocking & Pick<QueuePosition, 'retryInMs'> =>
  leftMs === -1
    ? { heldAs: 'foreign', retryInMs: Infinity, endless: true }
    : { heldAs: 'foreign', retryInMs: Math.max(1, leftMs) };

/** Returns whether a failure says that the key, or a name beside it, has another type of value. */
export const isOtherType = (failure: unknown): boolean =>
  failure instanceof StoreFailure && isWrongType(failure.cause);

/**
 * A kind of lock for which a string at the key is a hold of another library.
 *
 * Algorithm: a request is sent as always, because most keys have no string. If Redis replies with the error for another
 * type of value, the request is repeated, and then counts strings. Each of the two is one script, so a key never has
 * two holders. Queue entries are refreshed with strings counted at once.
 */
export class ForeignHolds<C extends Claim> implements NodeKind<C> {
  readonly downgrade?: (claim: C) => Promise<ExtendReply>;
  readonly commit?: (claim: C, token: number) => Promise<boolean>;
  readonly refreshEntries?: (claims: readonly C[]) => Promise<readonly QueueEntryReply[]>;

  constructor(
    private readonly kind: NodeKind<C>,
    private readonly runtime: Runtime,
  ) {
    if (kind.downgrade) this.downgrade = (claim) => kind.downgrade!(claim).catch(lostToString);
    if (kind.commit) this.commit = (claim, token) => kind.commit!(claim, token);
    if (kind.refreshEntries) this.refreshEntries = (claims) => this.refresh(claims);
  }

  acquire(claim: C): Promise<AcquireReply> {
    return this.kind.acquire(claim).catch(async (failure: unknown) => {
      if (!isOtherType(failure)) throw failure;
      return this.looking(await this.kind.acquire(countingStrings(claim)));
    });
  }

  extendMany(claims: readonly C[]): Promise<readonly ExtendReply[]> {
    return this.kind.extendMany(claims);
  }

  release(claim: C, how?: ReleaseOptions): Promise<ReleaseReply> {
    return this.kind.release(claim, how);
  }

  watch(claim: C, listener: WatchListener): Watch {
    return this.kind.watch(claim, listener);
  }

  private async refresh(claims: readonly C[]): Promise<readonly QueueEntryReply[]> {
    const replies = await this.kind.refreshEntries!(claims.map(countingStrings));
    return replies.map((reply) => this.looking(reply));
  }

  /** Shortens the pause before the next look at a string. Of the queued waiters only the first one looks. */
  private looking<R extends AcquireReply | QueueEntryReply>(reply: R): R {
    if (!('heldAs' in reply) || reply.heldAs !== 'foreign') return reply;
    if ('position' in reply && reply.position > 0) return reply;
    const lookInMs = MIN_LOOK_MS + this.runtime.random() * (MAX_LOOK_MS - MIN_LOOK_MS);
    return { ...reply, retryInMs: Math.min(reply.retryInMs, lookInMs) };
  }
}

const countingStrings = <C extends Claim>(claim: C): C & AtStrings => ({ ...claim, countsStrings: true });

/** A hold whose key has a string is gone: another library acquired the key after its end. */
const lostToString = (failure: unknown): ExtendReply => {
  if (isOtherType(failure)) return { status: 'lost' };
  throw failure;
};
