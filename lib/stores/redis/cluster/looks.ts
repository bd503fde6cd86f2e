import { unbound } from '../../../core/runtime.js';

/** How soon it is looked anew after something has changed, in ms; then ever later, until all is well again. */
const FIRST_MS = 100;
const LAST_MS = 1_000;

/** How often it is looked although nothing is known to have changed, in ms. */
const NOW_AND_THEN_MS = 30_000;

/** What a look at the cluster is, and whether another one is needed after it. */
export interface Look {
  look(): Promise<void>;
  isMended(): boolean;
}

/** When it is looked which server has which slots: never twice at a time, and soon after something has changed. */
export class Looks {
  private looking: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private nowAndThen: NodeJS.Timeout | undefined;
  private pauseMs = FIRST_MS;
  /** A look is due whatever the connections say. */
  private isDue = false;
  private closed = false;

  constructor(private readonly at: Look) {}

  /** Resolves when the look that is under way, or else a new one, is over. */
  now(): Promise<void> {
    if (!this.closed) {
      this.nowAndThen ??= unbound(() => setInterval(() => this.soon(), NOW_AND_THEN_MS).unref());
    }
    const looking = (this.looking ??= this.at.look().finally(() => (this.looking = undefined)));
    return looking;
  }

  /** Looks, unless there is a connection to each server that needs one by then. */
  unlessMended(): void {
    if (this.closed || this.timer) return;
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
    this.timer = unbound(() => setTimeout(later, pauseMs).unref());
  }

  soon(): void {
    this.isDue = true;
    this.unlessMended();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.nowAndThen);
    clearTimeout(this.timer);
  }
}
