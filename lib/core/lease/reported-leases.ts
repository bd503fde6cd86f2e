/** A lease, as its `acquired` event reported it. */
export interface ReportedLease {
  /** Label of its call. */
  readonly label: string;
}

/** Leases of one hold with an `acquired` event and no event of their end. Only a shared hold has several. */
export class ReportedLeases {
  // Most holds have one, and there are many holds.
  private one: ReportedLease | undefined;
  private others: Set<ReportedLease> | undefined;

  /** Label of one of them; undefined without any. */
  get label(): string | undefined {
    return (this.one ?? this.others?.values().next().value)?.label;
  }

  /** Records an `acquired` event. */
  add(lease: ReportedLease): void {
    if (this.one) (this.others ??= new Set()).add(lease);
    else this.one = lease;
  }

  /** Records the event of a lease's end. Returns false if the lease had no `acquired` event, or has ended before. */
  end(lease: ReportedLease): boolean {
    if (this.one !== lease) return this.others?.delete(lease) ?? false;
    this.one = undefined;
    return true;
  }

  /** Records the end of all of them, and returns them. */
  endAll(): readonly ReportedLease[] {
    const all = [...(this.one ? [this.one] : []), ...(this.others ?? [])];
    this.one = this.others = undefined;
    return all;
  }
}
