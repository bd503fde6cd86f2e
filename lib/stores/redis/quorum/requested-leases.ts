/** Leases requested within this fraction of the shorter one count as one lease, requested at the time of the first. */
const SAME_WITHIN = 1 / 32;

interface Requested {
  readonly requestedAt: number;
  /** Time at which it ends. */
  readonly until: number;
  readonly leaseMs: number;
}

/**
 * The leases that this process requested from its quorum and that a restarted server may forget. A server cannot forget
 * a lease that was requested after its start, or that ended before it.
 */
export class RequestedLeases {
  /**
   * In the order of the requests. Each lease ends later than the one before: a lease that ends before an earlier one
   * never matters. The distance between two of them grows with their length, so there are at most a few hundred.
   */
  private readonly leases: Requested[] = [];

  get size(): number {
    return this.leases.length;
  }

  add(leaseMs: number, now: number): void {
    const { leases } = this;
    const until = now + leaseMs;
    // A server that was started during a lease stays out for the whole length of that lease.
    while (leases.length > 0 && leases[0]!.until + leases[0]!.leaseMs <= now) leases.shift();
    const last = leases.at(-1);
    if (last && last.until >= until) return;
    if (last && now - last.requestedAt <= Math.min(last.leaseMs, leaseMs) * SAME_WITHIN) {
      leases[leases.length - 1] = {
        requestedAt: last.requestedAt,
        until,
        leaseMs: Math.max(last.leaseMs, leaseMs),
      };
    } else {
      leases.push({ requestedAt: now, until, leaseMs });
    }
  }

  /** Returns the longest of the leases that ran at that time, in ms; 0 when none did. */
  longestAt(time: number): number {
    let longestMs = 0;
    for (const { requestedAt, until, leaseMs } of this.leases) {
      if (requestedAt > time) break;
      if (until > time) longestMs = Math.max(longestMs, leaseMs);
    }
    return longestMs;
  }
}
