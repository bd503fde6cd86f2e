/** Statements of one store that may wait unsent. A further request is refused. */
export const MAX_UNSENT = 50_000;

/** Time in ms over which the rate of a store is measured. */
const MEASURED_MS = 1_000;

/** How much a process asks of its store, over all lanes. */
export class Load {
  /** Number of statements that were not sent yet. */
  unsent = 0;
  /** The statement that is tried again although others have locked its row for long: one of them at a time. */
  lockedOut: object | undefined;
  private since = 0;
  private sent = 0;
  private perSecond = 0;

  /** A statement is sent. */
  sends(now: number): void {
    const lastedMs = now - this.since;
    if (lastedMs >= MEASURED_MS) {
      this.perSecond = (this.sent * 1_000) / lastedMs;
      this.since = now;
      this.sent = 0;
    }
    this.sent += 1;
  }

  /** Returns what a caller is told whose statement was not sent. */
  textOf(name: string): string {
    return (
      `this process asks ${name} for more than it serves: ` +
      `${this.unsent} requests wait, and about ${Math.round(Math.max(this.perSecond, this.sent))} are served a second`
    );
  }
}
