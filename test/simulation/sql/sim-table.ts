import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply, KeyState, ReleaseReply } from '../../../lib/core/seam/reply.js';
import { takenOf, type Sight } from '../../../lib/stores/sql/places.js';
import { MAX_QUEUED } from '../../../lib/stores/sql/sql-terms.js';

/** Microseconds in a millisecond. */
export const US = 1_000;
/** For how long after a release only the head of the wait queue may take a key, and then its heir, as in the real stores. */
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

  acquire(claim: ExclusiveClaim, me: string, bell: string): AcquireReply & Partial<Sight> {
    const { finalKey, owner, waits } = claim;
    const now = this.now();
    const row = this.rows.get(finalKey);
    if (!row) {
      const first = newRow('exclusive', now);
      this.rows.set(finalKey, first);
      return this.grant({ ...first, fence: 0 }, claim, bell);
    }
    if (this.mayTake(row, owner, me)) {
      // All before it have had their time. A process that is not in the queue stands at its end.
      if (row.owner !== owner) row.queue = row.queue.slice(rankOf(row, me) + 1);
      return this.grant(row, claim, bell);
    }
    const hasRoom = row.queue.length < MAX_QUEUED;
    if (waits && !row.queue.includes(me) && hasRoom) row.queue.push(me);
    return takenOf(this.freeInMs(row, me), rankOf(row, me), row.kind === 'exclusive');
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

  /** Returns in how many ms a process may take the key, and its place. */
  peek(finalKey: string, me: string): Sight {
    const row = this.rows.get(finalKey);
    if (!row) return { freeInMs: 0, rank: MAX_QUEUED };
    const rank = rankOf(row, me);
    const mayEnter = !row.queue.includes(me) && row.queue.length < MAX_QUEUED;
    if (mayEnter || this.mayTake(row, undefined, me)) return { freeInMs: 0, rank };
    const isFree = row.until <= this.now();
    return { freeInMs: rank < 2 || isFree ? this.freeInMs(row, me) : Infinity, rank };
  }

  /** Returns whether the process was in the wait queue. */
  leave(finalKey: string, me: string): boolean {
    const row = this.rows.get(finalKey);
    if (!row?.queue.includes(me)) return false;
    row.queue = row.queue.filter((other) => other !== me);
    return true;
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

  private mayTake(row: SimRow, claimant: string | undefined, me: string): boolean {
    if (row.owner === claimant) return true;
    return row.until <= this.now() && this.freeInUs(row, me) <= 0;
  }

  private freeInMs(row: SimRow, me: string): number {
    return msOf(Math.max(1, this.freeInUs(row, me)));
  }

  private freeInUs(row: SimRow, me: string): number {
    return row.until + TURN_US * Math.min(2, rankOf(row, me)) - this.now();
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

/** Returns how many processes are before one in a wait queue; it stands at the end if it is not there. */
const rankOf = ({ queue }: SimRow, me: string): number => {
  const at = queue.indexOf(me);
  return at < 0 ? queue.length : at;
};

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
