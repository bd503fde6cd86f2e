import type { Claim } from '../../core/seam/claim.js';
import type { KindTraits } from '../../core/seam/kind-traits.js';
import type { KindStore, ReleaseOptions } from '../../core/seam/lock-store.js';
import { StoreQueueEntry } from '../../core/seam/store-queue-entry.js';
import type { AcquireReply, ExtendReply, ReleaseReply, Taken } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import type { NodeKind } from './lock-nodes.js';
import type { LockPaths } from './lock-path.js';
import { asUnknown, type NodeLocks } from './node-locks.js';
import type { PathOrder } from './path-order.js';
import { Place, type Places } from './place.js';
import type { ZkSession } from './zk-session.js';
import { closed } from './zk-session.js';

export interface ZookeeperKindHost {
  readonly session: ZkSession;
  readonly paths: LockPaths;
  readonly order: PathOrder;
  readonly places: Places;
  readonly locks: NodeLocks;
}

/** One kind of lock in ZooKeeper. A claim that waits has its node in the queue, and its process is told of its turn. */
export class ZookeeperKind implements KindStore {
  // A token is the number of a node, so each hold needs a node of its own.
  readonly traits: Partial<KindTraits> = { handedOff: false };

  /** Of read-write locks only. */
  readonly downgrade?: (claim: Claim) => Promise<ExtendReply>;

  constructor(
    private readonly kind: NodeKind,
    protected readonly host: ZookeeperKindHost,
  ) {
    if (kind === 'read' || kind === 'write') this.downgrade = (claim) => this.becomeReader(claim);
  }

  acquire(claim: Claim): Promise<AcquireReply> {
    return this.inOrder(claim, (path, until, sent) => {
      const known = this.known(claim, path);
      return known ? this.again(claim, known, path, until, sent) : this.request(claim, path, until, sent);
    });
  }

  async extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    const { session, locks } = this.host;
    const requests = claims.map((claim) =>
      this.inOrder(claim, async (path, until): Promise<ExtendReply> => {
        const place = this.known(claim, path);
        if (place?.state === 'held' && (await locks.isThere(place, until)))
          return { status: 'held', validForMs: session.grantedMs };
        // A downgrade could not end what it had left.
        if (place?.state === 'leaving') await locks.leave(place, until);
        return { status: 'lost' };
      }),
    );
    const replies = await Promise.allSettled(requests);
    const failed = replies.filter((reply) => reply.status === 'rejected');
    if (failed.length > 0 && failed.length === replies.length) throw failed[0]!.reason;
    return replies.map((reply) =>
      reply.status === 'fulfilled' ? reply.value : { status: 'failed', cause: reply.reason as unknown },
    );
  }

  release(claim: Claim, { keepForMs, until: sendUntil }: ReleaseOptions = {}): Promise<ReleaseReply> {
    if (keepForMs !== undefined)
      return Promise.reject(new StoreFailure(NOT_KEPT, 'not-executed', { claimOnly: true }));
    return this.inOrder({ ...claim, until: sendUntil }, (path, until, sent) =>
      this.leave(claim, path, until, sent),
    );
  }

  /** The place of a claim in the path of its key, if it has one. */
  protected known({ owner }: Claim, path: string): Place | undefined {
    return this.host.places.of(path, owner);
  }

  protected newPlace(claim: Claim, path: string): Place {
    return new Place(claim, path, this.kind);
  }

  protected leave(claim: Claim, path: string, until: number, sent: () => void): Promise<ReleaseReply> {
    return this.leavePlace(this.known(claim, path), until, sent);
  }

  protected async leavePlace(
    place: Place | undefined,
    until: number,
    sent?: () => void,
  ): Promise<ReleaseReply> {
    if (!place) return NOT_HELD;
    // Until its create has its reply, the name of its node is unknown.
    if (place.state === 'asked') await place.settled;
    const isHeld = place.state === 'held';
    const wasThere = await this.host.locks.leave(place, until, sent);
    return { wasHeld: isHeld && wasThere, othersWaiting: false };
  }

  private becomeReader(claim: Claim): Promise<ExtendReply> {
    const { locks, session } = this.host;
    return this.inOrder(claim, async (path, until) => {
      const place = this.known(claim, path);
      if (place?.state !== 'held') return { status: 'lost' };
      const isThere = place.kind === 'read' ? locks.isThere(place, until) : locks.downgrade(place, until);
      return (await isThere) ? { status: 'held', validForMs: session.grantedMs } : { status: 'lost' };
    });
  }

  /** A claim that does not wait looks first: a read instead of two writes when the lock is taken. */
  protected async request(
    claim: Claim,
    path: string,
    until: number,
    sent: () => void,
  ): Promise<AcquireReply> {
    const place = this.newPlace(claim, path);
    if (claim.waits) this.waitsAt(place, claim);
    else {
      const heldAs = await this.heldAs(claim, path, until);
      if (heldAs) return this.taken(heldAs);
    }
    return this.enter(place, until, sent);
  }

  protected waitsAt(place: Place, claim: Claim): void {
    place.makeEntry = () => new StoreQueueEntry(() => this.release(claim).then(() => undefined));
  }

  protected enter(place: Place, until: number, sent: () => void): Promise<AcquireReply> {
    const reply = this.tryToEnter(place, until, sent);
    place.settled = reply.catch(() => undefined);
    return reply;
  }

  private async tryToEnter(place: Place, until: number, sent: () => void): Promise<AcquireReply> {
    const { locks, places } = this.host;
    try {
      const found = await locks.enter(place, until, sent);
      if (found === 'granted') return this.firstAt(place);
      if (found === 'gone') {
        places.remove(place);
        return { status: 'taken', retryInMs: 0 };
      }
      if (place.entry) return this.queued(place.entry, found);
      await locks.leave(place, until);
      return this.taken(found.heldAs);
    } catch (failure) {
      throw await this.cleanUp(place, failure, until);
    }
  }

  /** The owner has a node already. */
  private async again(
    claim: Claim,
    place: Place,
    path: string,
    until: number,
    sent: () => void,
  ): Promise<AcquireReply> {
    const { locks, places } = this.host;
    if (place.state === 'asked') await place.settled;
    place.isFenced = claim.tokens > 0;
    const found = await locks.look(place, until);
    if (found === 'granted') return this.firstAt(place);
    if (found === 'gone') {
      places.remove(place);
      return this.request(claim, path, until, sent);
    }
    return place.entry ? this.queued(place.entry, found) : this.taken(found.heldAs);
  }

  /** Nothing is in the way of a place. */
  private firstAt(place: Place): AcquireReply {
    if (!place.onTurn) return this.host.locks.hold(place);
    place.onTurn();
    return this.queued(place.entry!, { position: 0, heldAs: this.kind });
  }

  /** Returns the failure of an acquire. What it may have left is removed by a release, if it is unknown. */
  private async cleanUp(place: Place, failure: unknown, until: number): Promise<unknown> {
    if (!(failure instanceof StoreFailure) || failure.outcome === 'unknown') return failure;
    const { locks, places } = this.host;
    if (place.node === undefined) {
      places.remove(place);
      return failure;
    }
    return locks.leave(place, until).then(
      () => failure,
      // Its node is still there.
      asUnknown,
    );
  }

  protected inOrder<T>(
    { finalKey, until: sendUntil }: Claim,
    operation: (path: string, until: number, sent: () => void) => Promise<T>,
  ): Promise<T> {
    const { session, paths, order } = this.host;
    if (session.isClosed) return Promise.reject(closed());
    const path = paths.of(finalKey);
    const until = session.timeLimit(sendUntil);
    return order.run(path, (sent) =>
      session.isClosed ? Promise.reject(closed()) : operation(path, until, sent),
    );
  }

  /** Returns as what a key is taken, or undefined when it is free. */
  protected async heldAs({ withdrawnBy }: Claim, path: string, until: number): Promise<NodeKind | undefined> {
    const { nodes } = await this.host.locks.queueOf(path, { until, mayWait: true, withdrawnBy });
    const isFree = this.kind === 'read' ? nodes.every(({ kind }) => kind === 'read') : nodes.length === 0;
    return isFree ? undefined : nodes[0]!.kind;
  }

  private taken(heldAs: NodeKind): Taken {
    return { status: 'taken', retryInMs: Infinity, ...this.otherKind(heldAs) };
  }

  private queued(entry: StoreQueueEntry, { position, heldAs }: { position: number; heldAs: NodeKind }) {
    return { status: 'queued', entry, position, retryInMs: Infinity, ...this.otherKind(heldAs) } as const;
  }

  /** Both halves of a read-write lock count as one kind. */
  protected otherKind(heldAs: NodeKind): { heldAs?: NodeKind } {
    return (heldAs === 'exclusive') === (this.kind === 'exclusive') ? {} : { heldAs };
  }
}

const NOT_HELD: ReleaseReply = { wasHeld: false, othersWaiting: false };
const NOT_KEPT = 'ZooKeeper ends a lock with the session of its process, and cannot keep it for a time';
