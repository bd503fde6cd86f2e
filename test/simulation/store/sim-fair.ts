import type { ClaimOf } from '../../../lib/core/seam/claim.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../../lib/core/seam/lock-store.js';
import { PlaceInLine } from '../../../lib/core/seam/place.js';
import type { AcquireReply, ExtendReply, PlaceReply, ReleaseReply } from '../../../lib/core/seam/reply.js';
import type { SpaceReply } from '../../../lib/stores/memory/kinds/kind-holds.js';
import { fairChannel } from '../server/fair-lines.js';
import type { SimConnection } from './sim-connection.js';
import type { SimSubscriber } from './sim-subscriber.js';

type FairClaim = ClaimOf<'fair'>;

/** What the Redis store does for fair locks, over the simulated connections. */
export class SimFair implements KindStore<FairClaim> {
  /** When each owner that stands in line was last kept there, on the clock of its process. */
  private readonly keptAt = new Map<string, number>();

  constructor(
    /** What releases and extends the holds of all kinds. */
    private readonly store: Pick<KindStore, 'release' | 'extendMany'>,
    private readonly connection: SimConnection,
    private readonly subscriber: SimSubscriber,
    private readonly now: () => number,
  ) {}

  async acquire(claim: FairClaim): Promise<AcquireReply> {
    const { owner } = claim;
    const sentAt = this.now();
    const reply = await this.connection.send<SpaceReply>({ name: 'acquire', claim, deaf: false });
    if (reply.status === 'granted') this.keptAt.delete(owner);
    if (reply.status !== 'queued') return reply;
    if (!this.keptAt.has(owner)) this.keptAt.set(owner, sentAt);
    return {
      ...reply,
      place: new PlaceInLine((doubt) => this.release(claim, { doubt }).then(() => undefined)),
    };
  }

  async keepPlaces(claims: readonly FairClaim[]): Promise<readonly PlaceReply[]> {
    const sentAt = this.now();
    const passedMs = claims.map(({ owner }) => Math.round(sentAt - (this.keptAt.get(owner) ?? sentAt)));
    const replies = await this.connection.send<readonly PlaceReply[]>({
      name: 'keep',
      claims,
      deaf: false,
      passedMs,
    });
    for (const [i, { status }] of replies.entries()) {
      const { owner } = claims[i]!;
      if (status === 'queued' && this.keptAt.has(owner)) this.keptAt.set(owner, sentAt);
      else if (status === 'gone') this.keptAt.delete(owner);
    }
    return replies;
  }

  release(claim: FairClaim, how?: ReleaseOptions): Promise<ReleaseReply> {
    this.keptAt.delete(claim.owner);
    return this.store.release(claim, how);
  }

  extendMany(claims: readonly FairClaim[]): Promise<readonly ExtendReply[]> {
    return this.store.extendMany(claims);
  }

  watch({ finalKey, owner, waits }: FairClaim, listener: WatchListener): Watch {
    return this.subscriber.watch(
      waits ? fairChannel(finalKey, owner) : finalKey,
      () => listener.hint(),
      (failure) => listener.failed(failure),
    );
  }
}
