/** Counts what a service instance has begun, leases and waits for example, so that a shutdown can wait for its end. */
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

  /** Resolves when nothing is left. */
  over(): Promise<void> {
    return this.count === 0 ? Promise.resolve() : new Promise((resolve) => this.onOver.push(resolve));
  }
}
