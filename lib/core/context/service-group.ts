/** A service instance, as the others of its group see it while they stop. */
export interface Stopping {
  /**
   * Returns whether it is stopping and still has work within its grace period. If it is stopping, the period begins
   * now.
   */
  hasWork(): boolean;
  /** Resolves when its work or its grace period has ended. */
  workOver(): Promise<void>;
}

/**
 * Service instances of one app, which stop together. Work under a lock of one of them may acquire locks of all, until
 * no stopping member has work within its grace period.
 */
export class ServiceGroup {
  private readonly members = new Set<Stopping>();

  add(member: Stopping): void {
    this.members.add(member);
  }

  /** Resolves when no stopping member has work within its grace period. */
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
