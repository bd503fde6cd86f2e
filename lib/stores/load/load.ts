import { StoreFailure } from '../../core/seam/store-failure.js';

/** Requests of one store that may wait unsent. A further request is refused. */
export const MAX_UNSENT = 50_000;

/** A store that has not replied for so long, in ms, is said to be silent. It may be about to fail. */
const SILENT_MS = 500;

/** Time in ms over which the rate of a store is measured. */
const MEASURED_MS = 1_000;

/** How much a process asks of its store, over all lanes. */
export class Load {
  /** Number of requests that were not sent yet. */
  unsent = 0;
  /** The statement that is tried again although others have locked its row for long: one of them at a time. */
  lockedOut: object | undefined;
  private since = 0;
  private sent = 0;
  private perSecond = 0;

  /** A request is sent. */
  sends(now: number): void {
    const lastedMs = now - this.since;
    if (lastedMs >= MEASURED_MS) {
      this.perSecond = (this.sent * 1_000) / lastedMs;
      this.since = now;
      this.sent = 0;
    }
    this.sent += 1;
  }

  /**
   * Returns the failure of a request that was not sent, because the store serves less than the process asks for.
   * `silentForMs`: for how long it has not replied.
   */
  overloaded(name: string, silentForMs: number): StoreFailure {
    const isSilent = silentForMs >= SILENT_MS;
    const before = this.unsent > 0 ? `${this.unsent} requests wait` : 'others about the same key came first';
    const rate = Math.round(Math.max(this.perSecond, this.sent));
    const text =
      (isSilent
        ? `${name} has not replied for ${Math.round(silentForMs)} ms: `
        : `this process asks ${name} for more than it serves: `) +
      `${before}, and about ${rate} are served a second`;
    return new StoreFailure(text, 'not-executed', { overloaded: true });
  }
}
