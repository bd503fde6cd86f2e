import type { LockKind } from '../../core/kinds/kinds.js';
import type { Runtime } from '../../core/util/runtime.js';
import type { ClaimOf } from '../../core/seam/claim.js';
import type { KindTraits } from '../../core/seam/kind-traits.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import type { SendTerms } from '../load/unsent-requests.js';
import { mayBeOfOneRow } from './lane.js';
import { Places, type Sight } from './places.js';
import type { KindStatements, SqlDialect } from './sql-dialect.js';
import type { SqlLanes } from './sql-lanes.js';
import type { Statement } from './sql.js';

/** Pauses in ms before rows of a renewal are asked again that others have locked; then the renewal of these rows fails. */
const PAUSES_MS = [5, 10, 20, 40, 80];

/** One kind of lock in a database. */
export class SqlKind<K extends LockKind> implements KindStore<ClaimOf<K>> {
  readonly traits: Partial<KindTraits>;
  private readonly places: Places;
  /** Owners whose renewal will be asked again, for each request. */
  private readonly repeats = new Set<Set<string>>();

  /** @internal The store creates it. */
  constructor(
    private readonly runtime: Runtime,
    private readonly lanes: SqlLanes,
    private readonly dialect: SqlDialect,
    private readonly statements: KindStatements<ClaimOf<K>>,
  ) {
    this.traits = { poll: dialect.poll };
    this.places = new Places(runtime, statements.wakeUps, (finalKey) => this.leave(finalKey));
  }

  async acquire(claim: ClaimOf<K>): Promise<AcquireReply> {
    const { finalKey } = claim;
    const { places, statements } = this;
    const place = places.request(finalKey);
    let since = 0;
    let othersWait = false;
    const isWoken = place.isQueued;
    const terms: SendTerms = {
      urgency: isWoken ? 'woken' : 'other',
      lines: [finalKey],
      ...{ owner: claim.owner, until: claim.until, withdrawnBy: claim.withdrawnBy },
    };
    const { free } = statements;
    const company =
      isWoken || place.isCrowded || !free
        ? undefined
        : { by: free, claim, sent: (at: number) => (since = at) };
    try {
      const reply: AcquireReply & Partial<Sight> = await this.lanes.run(
        finalKey,
        (sentAt) => {
          since = sentAt;
          // Only what was sent may be in the wait queue.
          if (claim.waits) place.isQueued = true;
          othersWait = place.othersWait(claim.owner);
          return statements.acquire(claim, { othersWait });
        },
        terms,
        company,
      );
      if (reply.status === 'granted') {
        place.granted(othersWait);
        if (place.rank !== undefined && place.othersWait(claim.owner)) places.wake([place]);
        return { ...reply, since };
      }
      place.isCrowded = true;
      if (claim.waits) places.seen(finalKey, { freeInMs: 1, ...reply });
      return reply;
    } finally {
      places.requested(place);
    }
  }

  unsent({ finalKey, owner }: ClaimOf<K>): StoreFailure | undefined {
    return this.lanes.laneOf(finalKey).failureOf(finalKey, owner);
  }

  watch(claim: ClaimOf<K>, listener: WatchListener): Watch {
    return this.places.watch(claim, listener);
  }

  async release(claim: ClaimOf<K>, how: ReleaseOptions = {}): Promise<ReleaseReply> {
    if (how.uncertain) await this.lanes.settle(how.uncertain);
    const { finalKey, owner } = claim;
    const { lanes, statements } = this;
    const { keepForMs = 0, until } = how;
    // Behind this, a renewal would keep the key for a whole lease.
    for (const owners of this.repeats) owners.delete(owner);
    lanes.laneOf(finalKey).withdraw(finalKey, owner);
    const by = keepForMs > 0 ? statements.keeps : statements.releases;
    const reply = await lanes.run(
      finalKey,
      () => statements.release(claim, how),
      { urgency: 'release', lines: [finalKey], until },
      by && { by, claim: keepForMs > 0 ? { ...claim, leaseMs: keepForMs } : claim },
    );
    this.places.released(finalKey, reply.othersWaiting);
    return reply;
  }

  async extendMany(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    const replies: ExtendReply[] = [];
    await Promise.all(
      this.lanes.parted(claims).map(async (batch) => {
        const found = await this.extend(batch.map(({ claim }) => claim));
        batch.forEach(({ at }, i) => (replies[at] = found[i]!));
      }),
    );
    const [first] = replies;
    if (first?.status === 'failed' && replies.every(({ status }) => status === 'failed')) throw first.cause;
    return replies;
  }

  async peekMany(claims: readonly ClaimOf<K>[]): Promise<readonly number[]> {
    const sights = await this.lanes.look(this.statements.peek(claims));
    claims.forEach(({ finalKey }, i) => this.places.seen(finalKey, sights[i]!));
    return sights.map(({ freeInMs }) => freeInMs);
  }

  /** Leaves all wait queues, before the store closes. */
  close(): void {
    this.places.close();
  }

  private leave(finalKey: string): void {
    const leaving = this.lanes.about(finalKey, this.dialect.leave(finalKey), { urgency: 'release' });
    // Without a reply, its turn ends by itself.
    leaving.then((others) => this.places.released(finalKey, others)).catch(() => undefined);
  }

  /** Extends claims of one lane. Rows that others have locked are asked again, together, behind what waits meanwhile. */
  private async extend(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    const replies = [...(await this.extendOnce(claims))];
    let locked = [...claims.keys()];
    for (const pauseMs of PAUSES_MS) {
      locked = locked.filter((i) => isLocked(replies[i]!));
      if (locked.length === 0) break;
      const owners = new Set(locked.map((i) => claims[i]!.owner));
      this.repeats.add(owners);
      await new Promise<void>((resolve) => this.runtime.setTimer(resolve, pauseMs, true));
      this.repeats.delete(owners);
      locked = locked.filter((i) => owners.has(claims[i]!.owner));
      if (locked.length === 0) break;
      const again = await this.extendOnce(locked.map((i) => claims[i]!));
      locked.forEach((at, i) => (replies[at] = again[i]!));
    }
    return replies;
  }

  /** After an error that may be due to one row, each half is extended by itself. */
  private async extendOnce(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    const [{ finalKey }] = claims as readonly [ClaimOf<K>];
    const ends = claims.map(({ until, leaseMs }) => ({
      until,
      urgentFrom: (until ?? Infinity) - leaseMs / 3,
    }));
    let since = 0;
    const make = (sentAt: number): Statement<readonly ExtendReply[]> => {
      since = sentAt;
      return this.statements.extend(claims);
    };
    try {
      const replies = await this.lanes.run(finalKey, make, {
        urgency: 'renewal',
        lines: [...new Set(claims.map((claim) => claim.finalKey))],
        until: ends.every(({ until }) => until !== undefined)
          ? Math.max(...ends.map(({ until }) => until!))
          : undefined,
        urgentFrom: Math.min(...ends.map(({ urgentFrom }) => urgentFrom)),
      });
      return replies.map((reply) => (reply.status === 'held' ? { ...reply, since } : reply));
    } catch (cause) {
      if (claims.length === 1 || !mayBeOfOneRow(cause))
        return claims.map((): ExtendReply => ({ status: 'failed', cause }));
      const half = claims.length >> 1;
      const halves = [claims.slice(0, half), claims.slice(half)].map((part) => this.extendOnce(part));
      return (await Promise.all(halves)).flat();
    }
  }
}

/** Whether others have locked the row. */
const isLocked = (reply: ExtendReply): boolean =>
  reply.status === 'failed' && reply.cause instanceof StoreFailure && reply.cause.transient;
