import type { Runtime } from '../../core/util/runtime.js';
import type { Grant } from '../../core/seam/grant.js';
import type { Session } from '../../core/seam/lease-model.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { NodeQueue, nodeNameOf, ownerPrefix, type LockNode, type NodeKind } from './lock-nodes.js';
import { CREATE_TRIES, type NodeParents } from './node-parents.js';
import { isOfPermits } from './permit-nodes.js';
import type { Place, Places } from './place.js';
import {
  create,
  EPHEMERAL,
  EPHEMERAL_SEQUENTIAL,
  getChildren,
  getData,
  remove,
  sync,
  type Acl,
  type ZkRequest,
} from './requests.js';
import type { HeldNodes } from './held-nodes.js';
import { CODE, hasCode, unless } from './zk-failure.js';
import { closed, type RequestTerms, type ZkSession } from './zk-session.js';
import type { ZkChange } from './zk-watches.js';

/** How long a request may be under way between two servers, in ms: six times the default of `syncLimit` ticks, 10 s. */
const UNDERWAY_MS = 60_000;
/** Pause in ms after a failure, before a waiter looks again. */
const RETRY_MS = 100;

/** What a claim found: the lock, or the position of its node and the kind of the first one. */
export type Found = { readonly position: number; readonly heldAs: NodeKind } | 'granted' | 'gone';

export interface NodeLocksHost {
  readonly runtime: Runtime;
  readonly session: ZkSession;
  readonly places: Places;
  readonly parents: NodeParents;
  readonly acls: readonly Acl[];
  readonly heldNodes: HeldNodes;
  /** A grant has this fencing token. */
  gaveToken(token: number): void;
}

/**
 * Curator's lock recipe: each claim has an ephemeral node with a number, and the one with nothing in its way has the
 * lock. A waiter watches the last node in its way, so an end wakes one waiter.
 *
 * Its node has the owner in its name. So a client finds a node whose create it had no reply to.
 */
export class NodeLocks {
  /** Places whose create had no reply and whose node was not found, with when that was. */
  private readonly undone = new Map<Place, number>();

  constructor(private readonly host: NodeLocksHost) {}

  /** Lists the queue of a path. A path that does not exist is an empty one. With `watched`, its next change is told. */
  async queueOf(path: string, terms?: RequestTerms, watched = false): Promise<NodeQueue> {
    const children = this.host.session.request(getChildren(path, watched), terms);
    return new NodeQueue(await children.catch(unless([], CODE.noNode)));
  }

  /** Creates the node of a place, and looks whether it has the lock. Calls `sent` when there is the node. */
  async enter(place: Place, until: number, sent: () => void, within?: Session): Promise<Found> {
    const { session, places, parents, acls } = this.host;
    const { path } = place;
    const name = nodeNameOf(place.kind, place.owner);
    for (let tries = 1; ; tries += 1) {
      try {
        // Otherwise, of many claims of new keys, none would come to its end.
        const mayWait = tries === 1;
        const terms = { until, mayWait, withdrawnBy: place.withdrawnBy };
        const children = await session.with({ ...terms, within }, async (current) => {
          places.ask(place, current);
          const inSession = { ...terms, within: current };
          // The server executes both in this order, so the list has the new node.
          const creating = session.request(create(`${path}/${name}`, EPHEMERAL_SEQUENTIAL, acls), inSession);
          const listing = session.request(getChildren(path), inSession);
          // Awaited later: both replies come in order.
          listing.catch(() => undefined);
          const created = await creating;
          sent();
          place.withdrawnBy = undefined;
          place.node = created.path.slice(path.length + 1);
          place.created = Number(created.created);
          try {
            return await listing;
          } catch (failure) {
            throw asUnknown(failure);
          }
        });
        const queue = new NodeQueue(children);
        if (queue.stranger !== undefined) throw inAnotherLock(queue.stranger);
        // A lock may have come while the path was created, and has seen no permits then.
        if (tries > 1 && place.permits !== undefined) await parents.checkParent(path, until);
        return await this.settle(place, queue, until);
      } catch (failure) {
        if (!hasCode(failure, CODE.noNode) || place.node !== undefined || tries === CREATE_TRIES)
          throw failure;
        await parents.create(path, until, place.permits !== undefined);
      }
    }
  }

  /** Looks whether a place has the lock now, and watches what is in its way otherwise. `watched`: see `queueOf`. */
  async look(place: Place, until?: number, watched = false): Promise<Found> {
    const queue = await this.queueOf(place.path, { until, within: place.session }, watched);
    return this.settle(place, queue, until);
  }

  /** Deletes the node of a place. Resolves with whether there was one. */
  async leave(place: Place, until: number, sent?: () => void): Promise<boolean> {
    const { places, runtime } = this.host;
    const { session: within } = place;
    place.state = 'leaving';
    place.watches(undefined);
    if (within === undefined || within.over.aborted) {
      places.remove(place);
      return false;
    }
    try {
      const isKnown = place.node !== undefined && !place.mayHaveMore;
      const deleting = isKnown
        ? this.delete(place.nodePath, { within, until })
        : this.deleteAll(place, { within, until }, sent);
      if (isKnown) sent?.();
      const wasThere = await deleting;
      places.remove(place);
      if (!isKnown && !wasThere) this.undone.set(place, runtime.now());
      return wasThere;
    } catch (failure) {
      if (!within.over.aborted) throw failure;
      // All of its session is gone.
      places.remove(place);
      return false;
    }
  }

  /**
   * The session goes on over another connection. A create may have been under way between two servers until now: it is
   * executed when its session comes back to the first one. So what was undone is undone once more.
   */
  resumed(): void {
    const { runtime, session } = this.host;
    for (const [place, at] of this.undone) {
      const isLate = runtime.now() > at + UNDERWAY_MS;
      if (isLate || place.session!.over.aborted) this.undone.delete(place);
      else
        this.deleteAll(place, { within: place.session, until: session.timeLimit() }).catch(() => undefined);
    }
  }

  /** Deletes what the owner of a place may have. */
  private async deleteAll(place: Place, terms: RequestTerms, sent?: () => void): Promise<boolean> {
    const names = await this.namesOf(place, terms);
    // A claim that waits for a permit has one node after the other.
    const successor = this.host.places.of(place.path, place.owner);
    const own = names.filter((name) => successor === place || name !== successor?.node);
    const deletions = own.map((name) => this.delete(`${place.path}/${name}`, terms));
    sent?.();
    return (await Promise.all(deletions)).includes(true);
  }

  /** Deletes a node. Resolves with whether it was there. */
  delete(nodePath: string, terms: RequestTerms): Promise<boolean> {
    return this.ifThere(remove(nodePath), terms);
  }

  /** Sends a request about a node. Resolves with whether it was there. */
  ifThere(request: ZkRequest<unknown>, terms: RequestTerms): Promise<boolean> {
    const sent = this.host.session.request(request, terms).then(() => true);
    return sent.catch(unless(false, CODE.noNode));
  }

  /** Grants a claim: from now on an end by another client is noticed. */
  hold(place: Place): Grant {
    const { session, heldNodes } = this.host;
    // The end of the session may be under way.
    if (session.isClosed) throw closed();
    place.state = 'held';
    heldNodes.begin(place);
    const grant = { status: 'granted', validForMs: session.grantedMs, session: place.session! } as const;
    if (!place.isFenced) return grant;
    this.host.gaveToken(place.created);
    return { ...grant, token: place.created, tokens: 1 };
  }

  /**
   * Makes a reader of a writer, as Curator does: a node with the number of the writer's, which is then deleted. Resolves
   * with false when the writer was gone.
   */
  async downgrade(place: Place, until: number): Promise<boolean> {
    const { session, acls, heldNodes } = this.host;
    const { path, nodePath, readerNode, session: within } = place;
    // Without a reply, the node of the reader may be there.
    place.mayHaveMore = true;
    const creating = session.request(create(`${path}/${readerNode}`, EPHEMERAL, acls), { within, until });
    const wasReader = await creating.then(() => false).catch(unless(true, CODE.nodeExists));
    // A request to release stands in the node that goes.
    const reading = session.request(getData(nodePath), { within, until }).catch(() => undefined);
    const wasWriter = await this.delete(nodePath, { within, until });
    heldNodes.hasRead(place, await reading);
    if (wasWriter || wasReader) return this.becomesReader(place);
    // Another client has ended the writer, and others may have had their turn since.
    await this.leave(place, until);
    return false;
  }

  /** Returns whether the node of a hold is there. */
  async isThere(place: Place, until: number): Promise<boolean> {
    const { session, places } = this.host;
    try {
      await session.request(getData(place.nodePath), { within: place.session, until });
      return true;
    } catch (failure) {
      if (!hasCode(failure, CODE.noNode) && !place.session?.over.aborted) throw failure;
    }
    if (
      place.mayHaveMore &&
      (await this.namesOf(place, { within: place.session, until })).includes(place.readerNode)
    )
      return this.becomesReader(place);
    places.remove(place);
    return false;
  }

  private becomesReader(place: Place): true {
    place.mayHaveMore = false;
    place.node = place.readerNode;
    place.kind = 'read';
    this.hold(place);
    return true;
  }

  /** Names of the nodes of an owner whose create had no reply. After a sync nothing follows over the same server. */
  private async namesOf({ path, owner }: Place, terms: RequestTerms): Promise<readonly string[]> {
    const { session } = this.host;
    const synced = session.request(sync(path), terms);
    const listed = this.queueOf(path, terms);
    const [, queue] = await Promise.all([synced, listed]);
    return queue.nodes.map(({ name }) => name).filter((name) => name.startsWith(ownerPrefix(owner)));
  }

  /** Says what a list means for a place. For a claim that waits, what is in its way is watched. */
  private async settle(place: Place, first: NodeQueue, until?: number): Promise<Found> {
    for (let queue = first; ;) {
      const position = queue.positionOf(place.node!);
      if (position === undefined || place.isLeft) return 'gone';
      const blockers = place.blockersIn(queue, position);
      const blocker = blockers.at(-1);
      // Its turn may have come since the list.
      if (!blocker || place.state === 'held') return 'granted';
      // By a turn alone nothing is held, so the first one waits, too.
      const holders = place.onTurn ? 0 : queue.holders.length;
      const found = { position: position - holders, heldAs: queue.nodes[0]!.kind };
      if (!place.entry) return found;
      place.state = 'queued';
      const isLast = blockers.length === 1 && !mayLeaveReader(place, blocker);
      if (await this.watch(place, blocker, isLast, until)) return found;
      queue = await this.queueOf(place.path, { until, within: place.session });
    }
  }

  /** Watches a node. Resolves with false when it is gone already. */
  private async watch(place: Place, { name }: LockNode, isLast: boolean, until?: number): Promise<boolean> {
    const { session } = this.host;
    const path = `${place.path}/${name}`;
    const unwatch = session.watches.add('data', path, (change) => this.changed(place, isLast, change));
    place.watches(unwatch);
    try {
      // A refused read leaves no watch in the server.
      await session.request(getData(path, true), { within: place.session, until });
      return true;
    } catch (failure) {
      unwatch();
      if (hasCode(failure, CODE.noNode)) return false;
      throw failure;
    }
  }

  private changed(place: Place, isLast: boolean, change: ZkChange): void {
    const isFirst = isLast && change === 'deleted';
    void this.lookAgain(place, () => (isFirst ? this.first(place) : this.look(place)));
  }

  private turnOf(place: Place): void {
    if (this.host.session.isClosed) return;
    if (place.onTurn) place.onTurn();
    else place.entry!.notify(this.hold(place));
  }

  /** Nothing is in the way of a place: it has the lock, unless another client has deleted its node, too. */
  private async first(place: Place): Promise<Found> {
    const isThere = await this.ifThere(getData(place.nodePath), { within: place.session });
    return isThere ? 'granted' : 'gone';
  }

  /** Looks until there is an answer: the session lives on, so the node keeps its place. */
  private async lookAgain(place: Place, look: () => Promise<Found>): Promise<void> {
    const { places, session } = this.host;
    while (place.isQueued && !session.isClosed) {
      try {
        const found = await look();
        if (!place.isQueued) return;
        if (found === 'granted') this.turnOf(place);
        if (found === 'gone') {
          places.remove(place);
          place.entry!.notify({ status: 'gone' });
        }
        return;
      } catch {
        await this.pause();
      }
    }
  }

  /** Resolves after the pause between two tries. */
  pause(): Promise<void> {
    return new Promise((resolve) => void this.host.runtime.setTimer(resolve, RETRY_MS, true));
  }
}

/** A writer may become a reader under the same number when its node ends; a reader behind it does not mind. */
const mayLeaveReader = ({ kind }: Place, blocker: LockNode): boolean =>
  blocker.kind === 'write' && kind !== 'read';

/** Returns the failure of a request after the node of its claim was created: it has to be removed. */
export const asUnknown = (failure: unknown): unknown => {
  if (!(failure instanceof StoreFailure) || failure.outcome === 'unknown') return failure;
  const { message, cause, passing, overloaded } = failure;
  return new StoreFailure(message, 'unknown', { cause, passing, overloaded });
};

const inAnotherLock = (name: string): StoreFailure =>
  new StoreFailure(
    isOfPermits(name)
      ? 'the key has permits. A key is for permits or for a lock; give each a key of its own. If it had permits before, ' +
          'forceUnlock frees it'
      : 'the lock of the key has another node inside its own. Locks whose paths contain each other would wait for each other; give each a path of its own',
    'not-executed',
    { keyOnly: true },
  );
