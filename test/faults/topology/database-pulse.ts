import { labNow } from '../history/lab-clock.js';
import type { Scribe } from '../history/scribe.js';
import type { Database, Probe } from './database.js';

const EVERY_MS = 20;
/** A server whose answer takes longer than this is too busy, or too starved, to blame the lock for being slow. */
const SLOW_MS = 25;
/** How long a slow server is felt after its late answer, in ms. */
const FELT_MS = 30;

/** Sends the server a statement again and again, and writes down when it is slow. */
export class DatabasePulse {
  private probe: Probe | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(
    private readonly database: Pick<Database, 'probe'>,
    private readonly scribe: Scribe,
  ) {
    this.next();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.probe?.close();
  }

  private next(): void {
    if (!this.closed) this.timer = setTimeout(() => void this.request(), EVERY_MS);
  }

  private async request(): Promise<void> {
    try {
      this.probe ??= await this.database.probe();
      const from = labNow();
      await this.probe.ask();
      const until = labNow();
      if (until - from > SLOW_MS) this.scribe.trouble('the database is slow', from, until + FELT_MS);
    } catch {
      // It is down, which is known.
      this.probe?.close();
      this.probe = undefined;
    } finally {
      if (this.closed) this.probe?.close();
      this.next();
    }
  }
}
