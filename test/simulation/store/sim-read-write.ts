import type { ClaimOf } from '../../../lib/core/seam/claim.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../../lib/core/seam/lock-store.js';
import { StoreQueueEntry } from '../../../lib/core/seam/queue-entry.js';
import type {
  AcquireReply,
  ExtendReply,
  QueueEntryReply,
  ReleaseReply,
} from '../../../lib/core/seam/reply.js';
import type { SpaceReply } from '../../../lib/stores/memory/kinds/kind-holds.js';
import type { SimConnection } from './sim-connection.js';

type ReadWriteClaim = ClaimOf<'read' | 'write'>;

/** What the Redis store does for both halves of read-write locks, over the simulated connections. */
export class SimReadWrite implements KindStore<ReadWriteClaim> {
  constructor(
    /** What is the same for the holds of all kinds. */
    private readonly store: Pick<KindStore, 'release' | 'extendMany' | 'watch'>,
    private readonly connection: SimConnection,
  ) {}

  async acquire(claim: ReadWriteClaim): Promise<AcquireReply> {
    const reply = await this.connection.send<SpaceReply>({ name: 'acquire', claim, notSubscribed: false });
    if (reply.status !== 'queued') return reply;
    // Nobody tells it of its turn: its process asks, after each announcement and to keep it.
    return {
      ...reply,
      entry: new StoreQueueEntry((uncertain) => this.release(claim, { uncertain }).then(() => undefined)),
    };
  }

  refreshEntries(claims: readonly ReadWriteClaim[]): Promise<readonly QueueEntryReply[]> {
    return this.connection.send<readonly QueueEntryReply[]>({ name: 'keep', claims, notSubscribed: false });
  }

  async release(claim: ReadWriteClaim, how?: ReleaseOptions): Promise<ReleaseReply> {
    const { wasHeld } = await this.store.release(claim, how);
    // Who waits stands in line: the order is the store's.
    return { wasHeld, othersWaiting: false };
  }

  extendMany(claims: readonly ReadWriteClaim[]): Promise<readonly ExtendReply[]> {
    return this.store.extendMany(claims);
  }

  downgrade(claim: ReadWriteClaim): Promise<ExtendReply> {
    return this.connection.send<ExtendReply>({ name: 'downgrade', claim });
  }

  watch(claim: ReadWriteClaim, listener: WatchListener): Watch {
    return this.store.watch(claim, listener);
  }
}
