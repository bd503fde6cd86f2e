import type { Claim, PermitClaim } from '../../core/seam/claim.js';
import type { AcquireReply, ReleaseReply } from '../../core/seam/reply.js';
import type { Found } from './node-locks.js';
import { leasesIn, permitsIn, turnsIn } from './permit-nodes.js';
import { Place, type PlaceState } from './place.js';
import { ZookeeperKind, type ZookeeperKindHost } from './zookeeper-kind.js';

/**
 * Permits, in the layout of Curator's InterProcessSemaphoreV2: a node in `leases` for each permit, and a mutex in
 * `locks`. Java counts the nodes in `leases`, and creates one only while it has the mutex.
 *
 * Of n permits, the first n nodes have one. A claim creates its node without the mutex while there are less than n, and
 * deletes it when it is too late. A claim that waits acquires the mutex first, so at most one node waits in `leases`. Java
 * waits until there are n nodes; two that wait there would wait for each other.
 */
export class ZookeeperPermits extends ZookeeperKind {
  constructor(host: ZookeeperKindHost) {
    super('permit', host);
  }

  /** Where it waits, or else its permit. */
  protected override known({ owner }: Claim, path: string): Place | undefined {
    const { places } = this.host;
    const turn = places.of(turnsIn(path), owner);
    return turn && !turn.isLeft ? turn : places.of(leasesIn(path), owner);
  }

  protected override newPlace(claim: Claim, path: string): Place {
    return new Place(claim, leasesIn(path), 'permit', (claim as PermitClaim).of);
  }

  /** Claims that wait have a permit before this one. */
  protected override async heldAs(claim: Claim, path: string, until: number): Promise<'permit' | undefined> {
    const terms = { until, mayWait: true, withdrawnBy: claim.withdrawnBy };
    const { holders, waiting } = await permitsIn(this.host.locks, path, terms);
    return holders.length + waiting.length < (claim as PermitClaim).of! ? undefined : 'permit';
  }

  /** A mutex that is in the way is part of the permits. */
  protected override otherKind(): object {
    return {};
  }

  protected override async request(
    claim: Claim,
    path: string,
    until: number,
    sent: () => void,
  ): Promise<AcquireReply> {
    // Of a claim that waits, what follows belongs to the same request.
    const reply = await super.request({ ...claim, waits: false }, path, until, claim.waits ? NOT_YET : sent);
    if (reply.status !== 'taken' || !claim.waits) return reply;
    const turn = new Place(claim, turnsIn(path), 'exclusive');
    turn.isFenced = false;
    this.waitsAt(turn, claim);
    turn.onTurn = () => {
      if (turn.state === 'first') return;
      turn.state = 'first';
      void this.waitForPermit(claim, path, turn);
    };
    return this.enter(turn, until, sent);
  }

  /** Leaves the place where it waits, and its permit. */
  protected override async leave(
    claim: Claim,
    path: string,
    until: number,
    sent: () => void,
  ): Promise<ReleaseReply> {
    const { places } = this.host;
    const permit = places.of(leasesIn(path), claim.owner);
    const turn = places.of(turnsIn(path), claim.owner);
    const [reply] = await Promise.all([
      this.leavePlace(permit, until, turn ? undefined : sent),
      this.leavePlace(turn, until),
    ]);
    return reply;
  }

  /** Waits for a permit while its turn lasts. It does not give up while the session lives: the claim keeps its place. */
  private async waitForPermit(claim: Claim, path: string, turn: Place): Promise<void> {
    const { locks, session } = this.host;
    let lease = this.newPlace(claim, path);
    while (turn.state === 'first' && !session.isClosed) {
      try {
        // A create without a reply may have left a node.
        if (lease.session && lease.node === undefined) await locks.leave(lease, session.timeLimit());
        if (lease.isLeft) lease = this.newPlace(claim, path);
        const found = lease.node === undefined ? await this.create(claim, lease, turn) : undefined;
        if (found === 'granted' || (await this.change(lease)) === 'granted')
          return await this.grant(turn, lease);
      } catch {
        await locks.pause();
      }
    }
  }

  /** Creates the node of a claim whose turn it is, in its order among the requests about the key. */
  private async create(claim: Claim, lease: Place, turn: Place): Promise<Found> {
    const created = this.inOrder(claim, (_, until, sent) =>
      turn.state === 'first'
        ? this.host.locks.enter(lease, until, sent, turn.session)
        : Promise.resolve('gone' as const),
    );
    lease.settled = created.catch(() => undefined);
    return created;
  }

  /** Looks whether there are less nodes before it by now. If not, resolves with the next change. */
  private async change(lease: Place): Promise<Found> {
    const { locks, session, places } = this.host;
    if (lease.state === 'asked') lease.state = 'queued';
    const changed = new Promise<unknown>((resolve) =>
      lease.watches(session.watches.add('children', lease.path, resolve)),
    );
    const found = await locks.look(lease, undefined, true);
    if (found === 'gone') places.remove(lease);
    else if (found !== 'granted') await changed;
    return found;
  }

  /** As in Curator, the mutex is left before the permit counts. */
  private async grant(turn: Place, lease: Place): Promise<void> {
    const { locks, session } = this.host;
    const entry = turn.entry!;
    lease.state = 'held';
    for (let isThere = true; isThere && !session.isClosed;) {
      try {
        await locks.leave(turn, session.timeLimit());
        isThere = false;
      } catch {
        await locks.pause();
      }
    }
    if ((lease.state as PlaceState) === 'held' && !session.isClosed) entry.notify(locks.hold(lease));
  }
}

const NOT_YET = (): void => undefined;
