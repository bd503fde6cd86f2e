import type { PermitClaim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply, ReleaseReply } from '../../../lib/core/seam/reply.js';
import { msOf, newRow, US, type SimRow, type SimTable } from './sim-table.js';

/** The statements about permits, on the rows of a table. */
export class SimPermits {
  constructor(private readonly table: SimTable) {}

  /** @param leaves whether a grant removes the process from the wait queue */
  acquire({ finalKey, owner, leaseMs, of, waits }: PermitClaim, me: string, leaves: boolean): AcquireReply {
    const now = this.table.now();
    const row = this.headOf(finalKey, now);
    if (row.until > now && row.kind !== 'permit')
      return { status: 'taken', retryInMs: msOf(row.until - now), heldAs: 'exclusive' };
    if (row.until <= now) Object.assign(row, { kind: 'permit', owner: '', since: now, queue: [] });
    const end = now + leaseMs * US;
    row.permits = of ?? row.permits;
    row.until = Math.max(row.until, end);
    for (const [other, until] of row.members) if (until <= now) row.members.delete(other);
    if (row.members.size < row.permits || row.members.has(owner)) {
      row.members.set(owner, end);
      if (leaves) row.queue = row.queue.filter((other) => other !== me);
      return { status: 'granted', validForMs: leaseMs };
    }
    if (waits && !row.queue.includes(me)) row.queue.push(me);
    return { status: 'taken', retryInMs: msOf(soonest(row) - now) };
  }

  release(finalKey: string, owner: string, me: string, keepForMs = 0): ReleaseReply {
    const row = this.table.rows.get(finalKey);
    const now = this.table.now();
    if (!row || (row.members.get(owner) ?? 0) <= now) return { wasHeld: false, othersWaiting: false };
    if (keepForMs > 0) row.members.set(owner, now + keepForMs * US);
    else row.members.delete(owner);
    return { wasHeld: true, othersWaiting: row.queue.some((other) => other !== me) };
  }

  /** Returns the rest of the lease in ms; undefined for a permit that is lost. */
  extend({ finalKey, owner, leaseMs }: PermitClaim): number | undefined {
    const row = this.table.rows.get(finalKey);
    const now = this.table.now();
    const until = row?.members.get(owner) ?? 0;
    if (!row || until <= now) return undefined;
    const longer = Math.max(until, now + leaseMs * US);
    row.members.set(owner, longer);
    row.until = Math.max(row.until, longer);
    return Math.floor((longer - now) / US);
  }

  /** Returns in how many ms a permit may be free. */
  peek(finalKey: string): number {
    const row = this.table.rows.get(finalKey);
    const now = this.table.now();
    if (!row || row.until <= now) return 0;
    if (row.kind !== 'permit') return msOf(row.until - now);
    const live = [...row.members.values()].filter((until) => until > now);
    return live.length < row.permits ? 0 : msOf(Math.min(...live) - now);
  }

  private headOf(finalKey: string, now: number): SimRow {
    const row = this.table.rows.get(finalKey) ?? newRow('permit', now);
    this.table.rows.set(finalKey, row);
    return row;
  }
}

const soonest = ({ members }: SimRow): number => Math.min(...members.values());
