import type { LockKind } from '../../core/kinds/kinds.js';
import type { Runtime } from '../../core/runtime.js';
import type { ClaimOf } from '../../core/seam/claim.js';
import type { KindTraits } from '../../core/seam/kind-traits.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import type { KindStatements, SqlDialect } from './sql-dialect.js';
import type { SqlLanes } from './sql-lanes.js';

/** Number of rows in one statement at most. */
const BATCH = 100;

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
    if (claim.perKeyCounter) throw new StoreFailure(REDISSON_ONLY, 'not-executed', { claimOnly: true });
    const isQueued = this.queued.has(finalKey);
    if (claim.waits) this.queued.add(finalKey);
    try {
      const othersWait = (this.watches.get(finalKey) ?? 0) > 1;
      const statement = this.statements.acquire(claim, { isQueued, othersWait });
      const reply = await this.lanes.run(finalKey, statement);
      if (reply.status === 'granted' && !othersWait) this.queued.delete(finalKey);
      return reply;
    } finally {
      // A caller that gave up meanwhile opens no watch that would be closed.
      if (this.queued.has(finalKey)) this.runtime.soon(() => this.leave(finalKey));
    }
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
    const reply = await this.lanes.run(claim.finalKey, this.statements.release(claim, how));
    if (reply.othersWaiting) this.statements.released?.();
    return reply;
  }

  async extendMany(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    const replies: ExtendReply[] = [];
    await Promise.all(
      this.lanes.parted(claims, BATCH).map(async (batch) => {
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
    this.lanes.run(finalKey, this.dialect.leave(finalKey)).catch(() => undefined);
  }

  /** After a failure that may be due to another claim of the batch, each is extended by itself. */
  private async extend(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    const [{ finalKey }] = claims as readonly [ClaimOf<K>];
    const replies = await this.lanes
      .run(finalKey, this.statements.extend(claims))
      .catch((cause: unknown) => claims.map((): ExtendReply => ({ status: 'failed', cause })));
    if (claims.length === 1) return replies;
    const again = replies.map(async (reply, i) => {
      const { cause } = reply as { cause?: unknown };
      if (!(cause instanceof StoreFailure && cause.transient)) return reply;
      return (await this.extend([claims[i]!]))[0]!;
    });
    return Promise.all(again);
  }
}

const REDISSON_ONLY = "fencing: 'redisson' goes with Redis: Java keeps its counters of tokens there";
