import { onAbort } from '../../core/util/abort-listeners.js';
import { CompactingMap } from '../../core/util/compacting.js';
import type { Claim } from '../../core/seam/claim.js';
import type { Session } from '../../core/seam/lease-model.js';
import type { StoreQueueEntry } from '../../core/seam/store-queue-entry.js';
import { MARKS, type LockNode, type NodeKind, type NodeQueue } from './lock-nodes.js';

/**
 * `asked`: its create was sent, or is about to be. `queued`, `held`: as its node. `first`: it holds nothing by its turn.
 * `leaving`: it is being deleted. `gone`: certainly not in the store any more.
 */
export type PlaceState = 'asked' | 'queued' | 'first' | 'held' | 'leaving' | 'gone';

/** The node of a claim, as far as its process knows. */
export class Place {
  state: PlaceState = 'asked';
  /** Session in which its node was requested; undefined before. */
  session: Session | undefined;
  /** Name of its node; undefined until the create was answered. */
  node: string | undefined;
  /** Whether the owner may have another node, whose create had no reply. */
  mayHaveMore = false;
  /** Number of the change that created the node. It grows with each grant, so it is the fencing token. */
  created = 0;
  /** Makes the entry of a claim that waits: one for each session, because the end of a session is its outcome. */
  makeEntry: (() => StoreQueueEntry) | undefined;
  entry: StoreQueueEntry | undefined;
  /** Called when the turn of a claim that waits has come. Default: its entry is granted the lock. */
  onTurn: (() => void) | undefined;
  /** Resolves when the acquire that is under way has settled. */
  settled: Promise<unknown> = Promise.resolve();
  private unwatch: (() => void) | undefined;

  readonly finalKey: string;
  readonly owner: string;
  /** See `Claim.withdrawnBy`. Undefined once there is its node. */
  withdrawnBy: readonly AbortSignal[] | undefined;
  /** Whether its grant has a fencing token. */
  isFenced: boolean;

  constructor(
    { finalKey, owner, tokens, withdrawnBy }: Claim,
    readonly path: string,
    public kind: NodeKind,
    /** Number of nodes in its path that may hold at once, of permits; undefined for a lock. */
    readonly permits?: number,
  ) {
    this.finalKey = finalKey;
    this.owner = owner;
    this.withdrawnBy = withdrawnBy;
    this.isFenced = tokens > 0;
  }

  /** Path of its node. */
  get nodePath(): string {
    return `${this.path}/${this.node}`;
  }

  /** Name of the node that it has after a downgrade. */
  get readerNode(): string {
    return this.node!.replace(MARKS.write, MARKS.read);
  }

  /** Ends the watch before, and has this one ended when the place is left. */
  watches(unwatch: (() => void) | undefined): void {
    this.unwatch?.();
    this.unwatch = unwatch;
  }

  /** Returns the nodes for which its own waits. Of permits, enough others may hold beside it. */
  blockersIn(queue: NodeQueue, position: number): readonly LockNode[] {
    const { permits } = this;
    if (permits === undefined) return queue.blockersOf(position);
    return queue.nodes.slice(0, Math.max(0, position - permits + 1));
  }

  /** Whether its node is, or is being, deleted. */
  get isLeft(): boolean {
    return this.state === 'leaving' || this.state === 'gone';
  }

  /** Whether its claim still waits for the turn of its node. */
  get isQueued(): boolean {
    return this.state === 'queued';
  }
}

/** The nodes of a process, by owner. */
export class Places {
  private readonly places = new CompactingMap<string, Place>();
  private readonly sessions = new WeakSet<Session>();

  /** Returns the place of an owner in a path. */
  of(path: string, owner: string): Place | undefined {
    return this.places.get(nameOf({ path, owner }));
  }

  /** Its node is gone, or never was. */
  remove(place: Place): void {
    place.state = 'gone';
    place.watches(undefined);
    const name = nameOf(place);
    if (this.places.get(name) === place) this.places.delete(name);
  }

  /** Whether a node of this process holds a lock. */
  get holdLocks(): boolean {
    return [...this.places.values()].some(({ state }) => state === 'held');
  }

  /** Its node is about to be requested in a session, and ends with that. */
  ask(place: Place, session: Session): void {
    place.state = 'asked';
    place.session = session;
    place.entry = place.makeEntry?.();
    this.places.set(nameOf(place), place);
    if (this.sessions.has(session)) return;
    this.sessions.add(session);
    onAbort(session.over, () => {
      for (const one of [...this.places.values()]) {
        if (one.session !== session) continue;
        this.remove(one);
        one.entry?.notify({ status: 'gone' });
      }
    });
  }
}

/** A path has no such character. */
const nameOf = ({ path, owner }: Pick<Place, 'path' | 'owner'>): string => `${path}\n${owner}`;
