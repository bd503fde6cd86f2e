import type { Style } from '../subjects/subject.js';
import { settledWithin } from './settled.js';

/** How many calls are made at a time. */
const AT_ONCE = 500;
const SETTLE_MS = 30_000;

/** Calls that stay inside their sections until they are told to leave. */
export class Holder {
  private readonly calls: Promise<void>[] = [];
  private leave: () => void = () => undefined;
  private readonly left = new Promise<void>((resolve) => {
    this.leave = resolve;
  });
  entered = 0;
  failures = 0;
  firstFailure: string | undefined;

  /** Asks for all keys; `entered` says how many it got so far. */
  async request(style: Style, keys: readonly string[]): Promise<void> {
    for (let from = 0; from < keys.length; from += AT_ONCE) {
      for (const key of keys.slice(from, from + AT_ONCE)) this.calls.push(this.hold(style, key));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Leaves all sections; false when some call has not come back. */
  async release(): Promise<boolean> {
    this.leave();
    return settledWithin(this.calls, SETTLE_MS);
  }

  private async hold(style: Style, key: string): Promise<void> {
    try {
      await style(key, () => {
        this.entered++;
        return this.left;
      });
    } catch (error) {
      this.failures++;
      this.firstFailure ??= error instanceof Error ? error.message : String(error);
    }
  }
}
