import type { Runtime } from '../util/runtime.js';
import type { Claim } from '../seam/claim.js';
import type { Watch, WatchListener } from '../seam/lock-store.js';
import type { StoreFailure } from '../seam/store-failure.js';
import { waitFor, type Waiting } from '../util/wait-for.js';

/** Interval of retries while no notification can arrive, in ms. */
export const NOT_SUBSCRIBED_RETRY_MS = 1_000;

/** Waits for the end of a blocking hold, for the one caller of a process that sends requests. */
export class WakeUp {
  /** How many times the key may have become free. Read before asking, compare after a refusal. */
  wakeUps = 0;
  private watching: Watch | undefined;
  private failure: StoreFailure | undefined;
  private sleep: Waiting<void> | undefined;
  /** Whether the sleep ends with the time of a caller behind it. */
  private isForDue = false;

  constructor(
    private readonly runtime: Runtime,
    private readonly watch: (claim: Claim, listener: WatchListener) => Watch,
    private readonly onWakeUp: () => void,
  ) {}

  /** Starts listening; from now on wake-ups are counted. */
  listen(claim: Claim): void {
    this.watching ??= this.watch(claim, {
      notified: () => this.notified(),
      failed: (failure) => {
        this.failure = failure;
        this.sleep?.resolve();
      },
    });
  }

  /** The key may have become free. */
  notified(): void {
    this.wakeUps++;
    this.sleep?.resolve();
    this.onWakeUp();
  }

  /** Whether wake-ups can arrive. */
  get live(): boolean {
    return this.watching?.live ?? false;
  }

  /**
   * Waits for a wake-up, `ms`, or the signal, whichever comes first; with `forDue` also until {@link wakeIfDue}. Throws
   * when wake-ups can never come.
   */
  async untilWoken(ms: number, signal: AbortSignal | undefined, forDue = false): Promise<void> {
    if (this.failure) {
      const { failure } = this;
      this.close();
      throw failure;
    }
    await waitFor<void>(this.runtime, {
      ms,
      signal,
      listen: (sleep) => {
        this.sleep = sleep;
        this.isForDue = forDue;
      },
      stop: () => (this.sleep = undefined),
      onTime: (sleep) => sleep.resolve(),
      onAbort: (sleep) => sleep.resolve(),
    });
  }

  /** Wakes the contender, if it sleeps here. */
  wakeNow(): void {
    this.sleep?.resolve();
  }

  /** Wakes the contender, if it sleeps until the lock may be free. False when it does not. */
  wakeIfDue(): boolean {
    const { sleep, isForDue } = this;
    if (isForDue) sleep?.resolve();
    return isForDue && sleep !== undefined;
  }

  close(): void {
    this.watching?.close();
    this.watching = undefined;
    this.failure = undefined;
  }
}
