import type { Runtime } from '../../../core/util/runtime.js';
import { every } from '../connection/timers.js';

/** Pause before the refresh after a change, in ms. It doubles up to `LAST_MS` until all is well again. */
const FIRST_MS = 100;
const LAST_MS = 1_000;

/** Interval of refreshes without a known change, in ms. */
const NOW_AND_THEN_MS = 30_000;

/** A refresh of the server info, and whether another one is needed after it. */
export interface Look {
  look(): Promise<void>;
  isMended(): boolean;
}

/** Schedules the refreshes of the slot map: one at a time, and soon after a change. */
export class SlotRefresher {
  private looking: Promise<void> | undefined;
  private timer: unknown;
  private endNowAndThen: (() => void) | undefined;
  private pauseMs = FIRST_MS;
  /** Whether a refresh is due whatever the state of the connections. */
  private isDue = false;
  private closed = false;

  constructor(
    private readonly at: Look,
    private readonly runtime: Runtime,
  ) {}

  /** Resolves when the current refresh, else a new one, is over. */
  now(): Promise<void> {
    if (!this.closed) this.endNowAndThen ??= every(this.runtime, NOW_AND_THEN_MS, () => this.soon());
    const looking = (this.looking ??= this.at.look().finally(() => (this.looking = undefined)));
    return looking;
  }

  /** Refreshes later, unless by then there is a connection to each server that needs one. */
  unlessMended(): void {
    if (this.closed || this.timer !== undefined) return;
    const later = (): void => {
      this.timer = undefined;
      if (!this.isDue && this.at.isMended()) return;
      this.isDue = false;
      this.now().then(
        () => (this.at.isMended() ? (this.pauseMs = FIRST_MS) : this.soon()),
        () => this.soon(),
      );
    };
    const { pauseMs } = this;
    this.pauseMs = Math.min(pauseMs * 2, LAST_MS);
    this.timer = this.runtime.setTimer(later, pauseMs, true);
  }

  soon(): void {
    this.isDue = true;
    this.unlessMended();
  }

  close(): void {
    this.closed = true;
    this.endNowAndThen?.();
    this.runtime.clearTimer(this.timer);
  }
}
