/** Leases that are asked for within this part of the shorter one count as one, asked for with the first of them. */
const SAME_WITHIN = 1 / 32;

interface Asked {
  readonly askedAt: number;
  /** When it has ended. */
  readonly until: number;
  readonly leaseMs: number;
}

/**
 * The leases that this process asked its quorum for, as far as a server that restarts may forget them: a lease that was asked
 * for after the start, or had ended before it, cannot be forgotten.
 */
export class AskedLeases {
  /**
   * In the order in which they were asked for. Each ends later than the one before: a lease that ends before an earlier one
   * never matters. The distance of two of them grows with their length, so there are a few hundred of them at most.
   */
  private readonly leases: Asked[] = [];

  get size(): number {
    return this.leases.length;
  }

  add(leaseMs: number, now: number): void {
    const { leases } = this;
    const until = now + leaseMs;
    // A server that was started while a lease ran stays out for the whole of it.
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

  /** The longest of those that ran at that time, in ms; 0 when none did. */
  longestAt(time: number): number {
    let longestMs = 0;
    for (const { askedAt, until, leaseMs } of this.leases) {
      if (askedAt > time) break;
      if (until > time) longestMs = Math.max(longestMs, leaseMs);
    }
    return longestMs;
  }
}
