import type { HistoryEvent } from '../../checker/history.js';
import { labNow } from './lab-clock.js';

const LOOK_EVERY_MS = 5;
/** The laboratory passes on all traffic: when it is this late, everything is. */
const LATE_MS = 10;
/** How long that is felt. */
const FELT_MS = 20;

/** Writes down what the laboratory itself does, and what becomes of it. */
export class Scribe {
  private events: HistoryEvent[] = [];
  private readonly timer: NodeJS.Timeout;

  constructor() {
    let expected = labNow() + LOOK_EVERY_MS;
    this.timer = setInterval(() => {
      const now = labNow();
      if (now - expected > LATE_MS) this.trouble('the laboratory is slow', expected, now + FELT_MS);
      expected = now + LOOK_EVERY_MS;
    }, LOOK_EVERY_MS);
  }

  readonly write = (event: HistoryEvent): void => void this.events.push(event);

  note(text: string): void {
    this.write({ type: 'note', at: labNow(), text });
  }

  /** `process` undefined: for all. */
  trouble(what: string, from: number, until: number, process?: string): void {
    this.write({ type: 'trouble', at: from, until, what, ...(process !== undefined && { process }) });
  }

  /** From now on, or since so long, Redis does not stand by what it has said, for this long. */
  unprotected(why: string, forMs: number, sinceMs = 0): void {
    this.write({ type: 'unprotected', at: labNow() - sinceMs, until: labNow() + forMs, why });
  }

  /** What was written since the last time. */
  take(): HistoryEvent[] {
    const { events } = this;
    this.events = [];
    return events;
  }

  close(): void {
    clearInterval(this.timer);
  }
}
