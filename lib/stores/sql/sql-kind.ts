import type { LockKind } from '../../core/kinds/kinds.js';
import type { Runtime } from '../../core/runtime.js';
import type { ClaimOf } from '../../core/seam/claim.js';
import type { KindTraits } from '../../core/seam/kind-traits.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import type { SendTerms } from '../load/unsent-requests.js';
import { mayBeOfOneRow } from './lane.js';
import type { KindStatements, SqlDialect } from './sql-dialect.js';
import type { SqlLanes } from './sql-lanes.js';
import type { Statement } from './sql.js';

/** Pauses in ms before rows of a renewal are asked again that others have locked; then the renewal of these rows fails. */
const PAUSES_MS = [5, 10, 20, 40, 80];

/** One kind of lock in a database. */
export class SqlKind<K extends LockKind> implements KindStore<ClaimOf<K>> {
  readonly traits: Partial<KindTraits>;
  /** Keys for which this process may be in the wait queue. */
  private readonly queued = new Set<string>();
  /** Number of waiters for each key. */
  private readonly watches = new Map<string, number>();

  constructor(
    private readonly runtime: Runtime,
    private readonly lanes: SqlLanes,
    private readonly dialect: SqlDialect,
    private readonly statements: KindStatements<ClaimOf<K>>,
  ) {
    this.traits = { poll: dialect.poll };
  }

  async acquire(claim: ClaimOf<K>): Promise<AcquireReply> {
    const { finalKey } = claim;
    let since = 0;
    let othersWait = false;
    const isWoken = this.queued.has(finalKey);
    const terms: SendTerms = {
      urgency: isWoken ? 'woken' : 'other',
      lines: [finalKey],
      ...{ owner: claim.owner, until: claim.until, withdrawnBy: claim.withdrawnBy },
    };
    const { free } = this.statements;
    const company = isWoken || !free ? undefined : { by: free, claim, sent: (at: number) => (since = at) };
    try {
      const reply = await this.lanes.run(
        finalKey,
        (sentAt) => {
          since = sentAt;
          // Only what was sent may be in the wait queue.
          if (claim.waits) this.queued.add(finalKey);
          othersWait = (this.watches.get(finalKey) ?? 0) > 1;
          return this.statements.acquire(claim, { othersWait });
        },
        terms,
        company,
      );
      if (reply.status !== 'granted') return reply;
      if (!othersWait) this.queued.delete(finalKey);
      return { ...reply, since };
    } finally {
      // A caller that gave up meanwhile opens no watch that would be closed.
      if (this.queued.has(finalKey)) this.runtime.soon(() => this.leave(finalKey));
    }
  }

  unsent({ finalKey, owner }: ClaimOf<K>): StoreFailure | undefined {
    return this.lanes.laneOf(finalKey).failureOf(finalKey, owner);
  }

  watch({ finalKey }: ClaimOf<K>, listener: WatchListener): Watch {
    const { watches } = this;
    const own = this.statements.watch?.(finalKey, listener);
    watches.set(finalKey, (watches.get(finalKey) ?? 0) + 1);
    return {
      get live() {
        return own?.live ?? false;
      },
      close: () => {
        own?.close();
        const left = watches.get(finalKey)! - 1;
        if (left > 0) watches.set(finalKey, left);
        else watches.delete(finalKey);
        this.leave(finalKey);
      },
    };
  }

  async release(claim: ClaimOf<K>, how: ReleaseOptions = {}): Promise<ReleaseReply> {
    if (how.uncertain) await this.lanes.settle(how.uncertain);
    const { finalKey, owner } = claim;
    const { lanes, statements } = this;
    const { keepForMs = 0, until } = how;
    lanes.laneOf(finalKey).withdraw(finalKey, owner);
    const by = keepForMs > 0 ? statements.keeps : statements.releases;
    const reply = await lanes.run(
      finalKey,
      () => statements.release(claim, how),
      { urgency: 'release', lines: [finalKey], until },
      by && { by, claim: keepForMs > 0 ? { ...claim, leaseMs: keepForMs } : claim },
    );
    if (reply.othersWaiting) statements.released?.();
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

  peekMany(claims: readonly ClaimOf<K>[]): Promise<readonly number[]> {
    return this.lanes.look(this.statements.peek(claims));
  }

  /** Leaves the wait queue when no caller waits: a process that keeps its turn delays the next ones. */
  private leave(finalKey: string): void {
    if (this.watches.has(finalKey) || !this.queued.delete(finalKey)) return;
    // Without a reply, its turn ends by itself.
    this.lanes.about(finalKey, this.dialect.leave(finalKey)).catch(() => undefined);
  }

  /** Extends claims of one lane. Rows that others have locked are asked again, together, behind what waits meanwhile. */
  private async extend(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    const replies = [...(await this.extendOnce(claims))];
    for (const pauseMs of PAUSES_MS) {
      const locked = replies.flatMap((reply, i) => (isLocked(reply) ? [i] : []));
      if (locked.length === 0) break;
      await new Promise<void>((resolve) => this.runtime.setTimer(resolve, pauseMs, true));
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
