/** Counts the leases and waits of a service instance, so that a shutdown can wait for their end. */
export class InFlight {
  count = 0;
  private readonly onOver: (() => void)[] = [];

  begin(): void {
    this.count++;
  }

  end(): void {
    this.count--;
    if (this.count === 0) for (const notify of this.onOver.splice(0)) notify();
  }

  /** Resolves when no lease and no wait is left. */
  over(): Promise<void> {
    return this.count === 0 ? Promise.resolve() : new Promise((resolve) => this.onOver.push(resolve));
  }
}
