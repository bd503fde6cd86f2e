/** One service instance, as the others of its group see its end. */
export interface Stopping {
  /** Whether it is stopping, and has work within its grace still. Its grace begins now, if it is stopping. */
  hasWork(): boolean;
  /** Resolves when its work is over, or its grace. */
  workOver(): Promise<void>;
}

/**
 * The service instances of one app, which stop together: what runs under a lock of one of them may take locks of each,
 * until none of those that stop has work within its grace.
 */
export class ServiceGroup {
  private readonly members = new Set<Stopping>();

  add(member: Stopping): void {
    this.members.add(member);
  }

  /** Resolves when no member that is stopping has work within its grace. */
  async workOver(): Promise<void> {
    for (;;) {
      const working = [...this.members].filter((member) => member.hasWork());
      if (working.length === 0) return;
      await Promise.all(working.map((member) => member.workOver()));
    }
  }

  remove(member: Stopping): void {
    this.members.delete(member);
  }
}
