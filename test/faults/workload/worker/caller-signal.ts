import { getEventListeners } from 'node:events';

/** A caller that goes away after a while: the signal it hands to its call. */
export class CallerSignal {
  private readonly controller: AbortController | undefined;
  private readonly timer: NodeJS.Timeout | undefined;
  private waiting = true;

  /** `onAbort` is called when it goes while it waits. `afterMs` undefined: it stays. */
  constructor(afterMs: number | undefined, onAbort: () => void) {
    if (afterMs === undefined) return;
    const controller = (this.controller = new AbortController());
    this.timer = setTimeout(() => {
      if (this.waiting) onAbort();
      controller.abort(new Error('the caller has gone'));
    }, afterMs);
  }

  get signal(): AbortSignal | undefined {
    return this.controller?.signal;
  }

  /** The wait is over; an abort does not end a lease. */
  granted(): void {
    this.waiting = false;
  }

  /** Returns how many listeners are left on the signal. */
  close(): number {
    this.waiting = false;
    clearTimeout(this.timer);
    return this.controller ? getEventListeners(this.controller.signal, 'abort').length : 0;
  }
}
