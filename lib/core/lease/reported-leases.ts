/** A lease, as its `acquired` event reported it. */
export interface ReportedLease {
  /** Label of its call. */
  readonly label: string;
}

/** Leases of one hold with an `acquired` event and no event of their end. Only a shared hold has several. */
export class ReportedLeases {
  private readonly leases: ReportedLease[] = [];

  /** Label of one of them; undefined without any. */
  get label(): string | undefined {
    return this.leases[0]?.label;
  }

  /** Records an `acquired` event. */
  add(lease: ReportedLease): void {
    this.leases.push(lease);
  }

  /** Records the event of a lease's end. Returns false if the lease had no `acquired` event, or has ended before. */
  end(lease: ReportedLease): boolean {
    const { leases } = this;
    const at = leases.indexOf(lease);
    if (at === -1) return false;
    const last = leases.pop()!;
    if (at < leases.length) leases[at] = last;
    return true;
  }

  /** Records the end of all of them, and returns them. */
  endAll(): readonly ReportedLease[] {
    return this.leases.splice(0);
  }
}
