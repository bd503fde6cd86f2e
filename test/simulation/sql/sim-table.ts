import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply, KeyState, ReleaseReply } from '../../../lib/core/seam/reply.js';

/** Microseconds in a millisecond. */
export const US = 1_000;
/** For how long after a release only the head of the wait queue may take a key, as in the real stores. */
export const TURN_US = 250_000;
/** Rows are swept this long after their end, as in the real stores. */
const SWEPT_AFTER_US = 24 * 3_600_000_000;

/** The row of a key, with the rows of its permits. Times are in µs by the clock of the server. */
export interface SimRow {
  kind: 'exclusive' | 'permit';
  owner: string;
  since: number;
  until: number;
  fence: number;
  bell: string;
  /** Processes in the wait queue, the head first. */
  queue: string[];
  permits: number;
  readonly members: Map<string, number>;
}

export const msOf = (us: number): number => Math.max(0, Math.ceil(us / US));

/** The table of the locks. Each method is one statement, and has the effect of the one in MySQL and PostgreSQL. */
export class SimTable {
  readonly rows = new Map<string, SimRow>();

  constructor(readonly now: () => number) {}

  /** As `MysqlExclusive.takeFree`: undefined when nothing has changed. */
  takeFree(claim: ExclusiveClaim, bell: string): AcquireReply | undefined {
    const row = this.rows.get(claim.finalKey);
    if (!row || row.until > this.now() || row.queue.length > 0) return undefined;
    return this.grant(row, claim, bell);
  }

  /** Whether an acquire changes nothing, and only reads. */
  onlyReads({ finalKey, owner, waits }: ExclusiveClaim, me: string): boolean {
    const row = this.rows.get(finalKey);
    return row !== undefined && !this.mayTake(row, owner, me) && !(waits && !row.queue.includes(me));
  }

  acquire(claim: ExclusiveClaim, me: string, bell: string): AcquireReply {
    const { finalKey, owner, waits } = claim;
    const now = this.now();
    const row = this.rows.get(finalKey);
    if (!row) {
      const first = newRow('exclusive', now);
      this.rows.set(finalKey, first);
      return this.grant({ ...first, fence: 0 }, claim, bell);
    }
    if (this.mayTake(row, owner, me)) {
      if (row.owner !== owner) row.queue = row.queue.slice(Math.max(0, row.queue.indexOf(me)) + 1);
      return this.grant(row, claim, bell);
    }
    if (waits && !row.queue.includes(me)) row.queue.push(me);
    const end = row.until > now ? row.until : row.until + TURN_US;
    const heldAs = row.kind === 'exclusive' ? {} : ({ heldAs: 'permit' } as const);
    return { status: 'taken', retryInMs: msOf(Math.max(1, end - now)), ...heldAs };
  }

  release(finalKey: string, owner: string, keepForMs = 0): ReleaseReply {
    const row = this.rows.get(finalKey);
    const now = this.now();
    if (row?.owner !== owner || row.until <= now) return { wasHeld: false, othersWaiting: false };
    const othersWaiting = row.queue.length > 0;
    if (keepForMs > 0) row.until = now + keepForMs * US;
    else row.until = othersWaiting ? now : 0;
    return { wasHeld: true, othersWaiting };
  }

  /** Returns the rest of the lease in ms; undefined for a hold that is lost. */
  extend({ finalKey, owner, leaseMs }: ExclusiveClaim): number | undefined {
    const row = this.rows.get(finalKey);
    const now = this.now();
    if (row?.owner !== owner || row.until <= now) return undefined;
    row.until = Math.max(row.until, now + leaseMs * US);
    return Math.floor((row.until - now) / US);
  }

  /** Returns in how many ms the key may be free. */
  peek(finalKey: string, me: string): number {
    const row = this.rows.get(finalKey);
    const now = this.now();
    if (!row || !row.queue.includes(me)) return 0;
    if (row.until <= now && row.queue[0] === me) return 0;
    return msOf(row.until - now + (row.until > now ? 0 : TURN_US));
  }

  leave(finalKey: string, me: string): void {
    const row = this.rows.get(finalKey);
    if (row) row.queue = row.queue.filter((other) => other !== me);
  }

  inspect(finalKey: string): KeyState | null {
    const row = this.rows.get(finalKey);
    if (!row) return null;
    const now = this.now();
    const held: readonly (readonly [string, number])[] =
      row.kind === 'exclusive' ? [[row.owner, row.until]] : [...row.members];
    const holders = held
      .filter(([, until]) => until > now)
      .map(([owner, until]) => ({ owner, count: 1, remainingMs: msOf(until - now) }));
    return holders.length > 0 ? { kind: row.kind, holders, waiting: [] } : null;
  }

  /** Deletes rows that have been free for a day. Returns how many. */
  sweep(): number {
    const before = this.now() - SWEPT_AFTER_US;
    let swept = 0;
    for (const [name, row] of this.rows) {
      for (const [owner, until] of row.members) if (until < before) row.members.delete(owner);
      if (row.until >= before || row.fence >= before || row.members.size > 0) continue;
      this.rows.delete(name);
      swept += 1;
    }
    return swept;
  }

  private mayTake({ owner, until, queue }: SimRow, claimant: string, me: string): boolean {
    const now = this.now();
    if (owner === claimant) return true;
    return until <= now && (queue.length === 0 || queue[0] === me || until + TURN_US <= now);
  }

  private grant(
    row: SimRow,
    { finalKey, owner, leaseMs, tokens }: ExclusiveClaim,
    bell: string,
  ): AcquireReply {
    const now = this.now();
    const token = Math.max(row.fence + 1, now);
    this.rows.set(finalKey, {
      ...row,
      kind: 'exclusive',
      since: row.owner === owner ? row.since : now,
      owner,
      until: now + leaseMs * US,
      fence: token + tokens - 1,
      bell,
    });
    return { status: 'granted', validForMs: leaseMs, ...(tokens > 0 && { token, tokens }) };
  }
}

export const newRow = (kind: SimRow['kind'], now: number): SimRow => ({
  kind,
  owner: '',
  since: now,
  until: 0,
  fence: now,
  bell: '',
  queue: [],
  permits: 0,
  members: new Map(),
});
