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
import { fairChannel } from '../server/fair-queues.js';
import type { SimConnection } from './sim-connection.js';
import type { SimSubscriber } from './sim-subscriber.js';

type FairClaim = ClaimOf<'fair'>;

/** What the Redis store does for fair locks, over the simulated connections. */
export class SimFair implements KindStore<FairClaim> {
  constructor(
    /** What releases and extends the holds of all kinds. */
    private readonly store: Pick<KindStore, 'release' | 'extendMany'>,
    private readonly connection: SimConnection,
    private readonly subscriber: SimSubscriber,
  ) {}

  async acquire(claim: FairClaim): Promise<AcquireReply> {
    const reply = await this.connection.send<SpaceReply>({ name: 'acquire', claim, notSubscribed: false });
    if (reply.status !== 'queued') return reply;
    return {
      ...reply,
      entry: new StoreQueueEntry((uncertain) => this.release(claim, { uncertain }).then(() => undefined)),
    };
  }

  refreshEntries(claims: readonly FairClaim[]): Promise<readonly QueueEntryReply[]> {
    return this.connection.send<readonly QueueEntryReply[]>({ name: 'keep', claims, notSubscribed: false });
  }

  release(claim: FairClaim, how?: ReleaseOptions): Promise<ReleaseReply> {
    return this.store.release(claim, how);
  }

  extendMany(claims: readonly FairClaim[]): Promise<readonly ExtendReply[]> {
    return this.store.extendMany(claims);
  }

  watch({ finalKey, owner, waits }: FairClaim, listener: WatchListener): Watch {
    return this.subscriber.watch(
      waits ? fairChannel(finalKey, owner) : finalKey,
      () => listener.notified(),
      (failure) => listener.failed(failure),
    );
  }
}
