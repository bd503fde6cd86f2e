/** Leases requested within this fraction of the shorter one count as one lease, requested at the time of the first. */
const SAME_WITHIN = 1 / 32;

interface Asked {
  readonly askedAt: number;
  /** Time at which it ends. */
  readonly until: number;
  readonly leaseMs: number;
}

/**
 * The leases that this process requested from its quorum and that a restarted server may forget. A server cannot forget
 * a lease that was requested after its start, or that ended before it.
 */
export class AskedLeases {
  /**
   * In the order of the requests. Each lease ends later than the one before: a lease that ends before an earlier one
   * never matters. The distance between two of them grows with their length, so there are at most a few hundred.
   */
  private readonly leases: Asked[] = [];

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
    if (last && now - last.askedAt <= Math.min(last.leaseMs, leaseMs) * SAME_WITHIN) {
      leases[leases.length - 1] = {
        askedAt: last.askedAt,
        until,
        leaseMs: Math.max(last.leaseMs, leaseMs),
      };
    } else {
      leases.push({ askedAt: now, until, leaseMs });
    }
  }

  /** Returns the longest of the leases that ran at that time, in ms; 0 when none did. */
  longestAt(time: number): number {
    let longestMs = 0;
    for (const { askedAt, until, leaseMs } of this.leases) {
      if (askedAt > time) break;
      if (until > time) longestMs = Math.max(longestMs, leaseMs);
    }
    return longestMs;
  }
}
