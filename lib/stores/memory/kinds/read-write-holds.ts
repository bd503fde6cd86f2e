import type { ReadClaim, WriteClaim } from '../../../core/seam/claim.js';
import type {
  ExtendReply,
  Holder,
  KeyState,
  QueueEntryReply,
  QueuePosition,
} from '../../../core/seam/reply.js';
import type { KindHolds, SpaceReply, Tokens } from './kind-holds.js';
import { WaitQueue } from './wait-queue.js';
import { Readers } from './readers.js';
import { FIRST_SWEEP_AT, left, type Blocker, type SpaceClock, type Timed } from './space-clock.js';

type ReadWriteClaim = ReadClaim | WriteClaim;

/** One key: a writer, or readers by owner, and the waiters. */
interface Shared {
  writer: (Timed & { readonly owner: string }) | undefined;
  readonly readers: Readers;
  readonly queue: WaitQueue<ReadWriteClaim>;
}

/** The read-write locks of a memory space, like their hashes, keys and scripts in Redis. */
export class ReadWriteHolds implements KindHolds<ReadWriteClaim> {
  private readonly keys = new Map<string, Shared>();
  private sweepAt = FIRST_SWEEP_AT;

  /**  @param otherKind returns the blocking hold of another kind of lock */
  constructor(
    private readonly clock: SpaceClock,
    private readonly notify: (finalKey: string) => void,
    private readonly tokens: Tokens,
    private readonly otherKind: (finalKey: string) => Blocker | undefined,
  ) {}

  get size(): number {
    this.sweep();
    const now = this.clock.now();
    let size = 0;
    for (const { writer, readers } of this.keys.values())
      size += readers.alive(now).length + (writer ? 1 : 0);
    return size;
  }

  has(finalKey: string): boolean {
    return this.blocker(finalKey) !== undefined;
  }

  names(): Iterable<string> {
    return this.keys.keys();
  }

  /** Returns the hold that a lock of another kind has to wait for: the one that lasts longest. */
  blocker(finalKey: string): Blocker | undefined {
    const now = this.clock.now();
    const shared = this.find(finalKey, now);
    const own = shared && longest(shared);
    return own && { since: own.since, leaseMs: own.leaseMs, kind: shared.writer ? 'write' : 'read' };
  }

  /** See `KindStore.acquire`. Readers wait behind a waiting writer, and a writer behind all waiters. */
  acquire(claim: ReadWriteClaim): SpaceReply {
    const { finalKey, owner, leaseMs } = claim;
    const now = this.clock.now();
    if (this.keys.size >= this.sweepAt) this.sweep();
    const shared = this.find(finalKey, now) ?? {
      writer: undefined,
      readers: new Readers(),
      queue: new WaitQueue<ReadWriteClaim>(),
    };
    const own = this.own(shared, owner, now);
    if (own && this.kindOf(shared, owner) === claim.kind) {
      const granted = this.grant(shared, claim, now);
      if (left(own, now) > leaseMs) this.notify(finalKey);
      return granted;
    }
    const waitMs = this.waitMs(shared, claim, now);
    if (waitMs === 0) return this.grant(shared, claim, now);
    const blockedBy = this.blockedBy(claim, waitMs);
    if (!claim.waits || !claim.entryTerms) return { status: 'taken', ...blockedBy };
    if (!shared.queue.has(owner)) shared.queue.add(claim);
    this.keys.set(finalKey, shared);
    return { status: 'queued', ...shared.queue.positionOf(owner, blockedBy) };
  }

  /** See `KindStore.refreshEntries`; for one claim. */
  keep(claim: ReadWriteClaim): QueueEntryReply {
    const { finalKey, owner } = claim;
    const now = this.clock.now();
    const shared = this.find(finalKey, now);
    if (shared && this.own(shared, owner, now)) return { status: 'held' };
    if (!shared?.queue.has(owner)) return { status: 'gone' };
    const waitMs = this.waitMs(shared, claim, now);
    if (waitMs > 0) {
      return { status: 'queued', ...shared.queue.positionOf(owner, this.blockedBy(claim, waitMs)) };
    }
    // Without tokens: the owner's process asks again before it goes on, and gets its tokens then.
    this.grant(
      shared,
      { ...claim, leaseMs: claim.entryTerms?.provisionalLeaseMs ?? claim.leaseMs, tokens: 0 },
      now,
    );
    return { status: 'held' };
  }

  /** See `KindStore.extendMany`; for one claim. */
  extend({ finalKey, owner, leaseMs }: ReadWriteClaim): ExtendReply {
    const now = this.clock.now();
    const shared = this.find(finalKey, now);
    const own = shared && this.own(shared, owner, now);
    if (!own) return { status: 'lost' };
    const remainingMs = left(own, now);
    if (remainingMs >= leaseMs) return { status: 'held', validForMs: remainingMs };
    this.arm(shared, owner, { since: now, leaseMs });
    return { status: 'held', validForMs: leaseMs };
  }

  /** See `KindStore.downgrade`. */
  downgrade({ finalKey, owner, leaseMs }: ReadWriteClaim): ExtendReply {
    const now = this.clock.now();
    const shared = this.find(finalKey, now);
    const own = shared && this.own(shared, owner, now);
    if (!own) return { status: 'lost' };
    if (own !== shared.writer) return { status: 'held', validForMs: left(own, now) };
    const validForMs = Math.max(left(own, now), leaseMs);
    shared.writer = undefined;
    shared.readers.set(owner, { since: now, leaseMs: validForMs });
    this.notify(finalKey);
    return { status: 'held', validForMs };
  }

  /** See `NodeKind.commit`. */
  commit(claim: ReadWriteClaim, token: number): boolean {
    const shared = this.find(claim.finalKey, this.clock.now());
    if (shared?.writer?.owner !== claim.owner) return false;
    this.tokens.raise(claim, token);
    return true;
  }

  /** See `KindStore.release`. Removes a waiting owner from the queue. Returns whether the owner had the key. */
  release({ finalKey, owner }: ReadWriteClaim, keepForMs?: number): boolean {
    const now = this.clock.now();
    const shared = this.find(finalKey, now);
    if (!shared) return false;
    const stood = shared.queue.remove(owner);
    const held = this.own(shared, owner, now) !== undefined;
    if (held && keepForMs !== undefined) this.arm(shared, owner, { since: now, leaseMs: keepForMs });
    else this.end(shared, owner);
    this.find(finalKey, now);
    if (held || stood) this.notify(finalKey);
    return held;
  }

  /** See `LockStore.inspect`. */
  inspect(finalKey: string): KeyState | null {
    const now = this.clock.now();
    const shared = this.find(finalKey, now);
    if (!shared) return null;
    const { writer, readers, queue } = shared;
    const holderOf = (owner: string, own: Timed): Holder => ({
      owner,
      count: 1,
      remainingMs: left(own, now),
    });
    const holders = writer
      ? [holderOf(writer.owner, writer)]
      : readers.alive(now).map(([owner, own]) => holderOf(owner, own));
    const [first] = holders.length === 0 ? queue.claims : [];
    return { kind: writer ? 'write' : (first?.kind ?? 'read'), holders, waiting: queue.owners };
  }

  /** See `LockStore.forceUnlock`. */
  forceUnlock(finalKey: string): boolean {
    const now = this.clock.now();
    const shared = this.find(finalKey, now);
    if (!shared || !longest(shared)) return false;
    shared.writer = undefined;
    shared.readers.clear();
    this.find(finalKey, now);
    this.notify(finalKey);
    return true;
  }

  /** Returns the reply about the blocking hold. */
  private blockedBy({ finalKey }: ReadWriteClaim, waitMs: number): Omit<QueuePosition, 'position'> {
    const other = this.otherKind(finalKey);
    return { retryInMs: Math.ceil(waitMs), ...(other && { heldAs: other.kind }) };
  }

  /** Returns how long a claim has to wait at most, in ms; 0 when it may enter. */
  private waitMs(shared: Shared, claim: ReadWriteClaim, now: number): number {
    const other = this.otherKind(claim.finalKey);
    if (other) return left(other, now);
    const { writer, queue } = shared;
    const blocker = claim.kind === 'write' ? longest(shared) : writer;
    if (blocker) return left(blocker, now);
    const isBehind = queue.isBehind(
      claim.owner,
      (before) => claim.kind === 'write' || before.kind === 'write',
    );
    return isBehind ? Infinity : 0;
  }

  private grant(shared: Shared, claim: ReadWriteClaim, now: number): SpaceReply {
    const { kind, finalKey, owner, leaseMs, tokens } = claim;
    const token = tokens > 0 ? this.tokens.reserve(claim) : undefined;
    if (kind === 'write') shared.writer = { owner, since: now, leaseMs };
    else shared.readers.set(owner, { since: now, leaseMs });
    shared.queue.remove(owner);
    this.keys.set(finalKey, shared);
    return { status: 'granted', validForMs: leaseMs, ...(token !== undefined && { token, tokens }) };
  }

  private own({ writer, readers }: Shared, owner: string, now: number): Timed | undefined {
    return writer?.owner === owner ? writer : readers.get(owner, now);
  }

  private kindOf({ writer }: Shared, owner: string): 'read' | 'write' {
    return writer?.owner === owner ? 'write' : 'read';
  }

  private arm(shared: Shared, owner: string, timed: Timed): void {
    if (shared.writer?.owner === owner) shared.writer = { owner, ...timed };
    else shared.readers.set(owner, timed);
  }

  private end(shared: Shared, owner: string): void {
    if (shared.writer?.owner === owner) shared.writer = undefined;
    else shared.readers.delete(owner);
  }

  private sweep(): void {
    const now = this.clock.now();
    for (const finalKey of [...this.keys.keys()]) this.find(finalKey, now);
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.keys.size * 2);
  }

  /** Returns the state of a key without expired parts; undefined when nothing is left. */
  private find(finalKey: string, now: number): Shared | undefined {
    const shared = this.keys.get(finalKey);
    if (!shared) return undefined;
    const { writer, readers, queue } = shared;
    if (writer && left(writer, now) <= 0) shared.writer = undefined;
    if (readers.longest && left(readers.longest, now) <= 0) readers.clear();
    if (shared.writer || !readers.isEmpty || queue.length > 0) return shared;
    this.keys.delete(finalKey);
    return undefined;
  }
}

/** Returns the hold of a key that lasts longest. A writer is the only holder. */
const longest = ({ writer, readers }: Shared): Timed | undefined => writer ?? readers.longest;
