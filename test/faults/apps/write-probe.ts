import { setTimeout as sleep } from 'node:timers/promises';
import { labNow } from '../history/lab-clock.js';

const LOOK_EVERY_MS = 15;

/** The ports of the servers that accept writes and that a lock has to be on; undefined while there are too few. */
export type Accepting = () => Promise<readonly number[] | undefined>;

const isSame = (some: readonly number[], others: readonly number[]): boolean =>
  some.length === others.length && some.every((port, i) => port === others[i]);

/** Looks all the time where writes are accepted, without the library. */
export class WriteProbe {
  /** When no server accepted writes, or another one began to. */
  readonly outages: { readonly from: number; readonly to: number }[] = [];
  private last: readonly number[] | undefined;
  /** Since when the servers of `last` accept writes no more. */
  private brokenAt: number | undefined;
  private stopped = false;
  private readonly work: Promise<void>;

  constructor(
    private readonly accepting: Accepting,
    /** Called with each change. */
    private readonly changed: (ports: readonly number[]) => void,
  ) {
    this.work = this.lookOnAndOn();
  }

  /** The servers that accept writes at the moment. */
  get ports(): readonly number[] | undefined {
    return this.brokenAt === undefined ? this.last : undefined;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.work;
  }

  private async lookOnAndOn(): Promise<void> {
    while (!this.stopped) {
      const from = labNow();
      const ports = await this.accepting().catch(() => undefined);
      this.saw(ports, from);
      await sleep(LOOK_EVERY_MS);
    }
  }

  private saw(ports: readonly number[] | undefined, at: number): void {
    if (!ports) {
      this.brokenAt ??= at;
      return;
    }
    const isFirst = this.last === undefined;
    if (!isFirst && this.brokenAt === undefined && isSame(ports, this.last!)) return;
    const from = this.brokenAt ?? at;
    this.last = ports;
    this.brokenAt = undefined;
    if (isFirst) return;
    this.outages.push({ from, to: labNow() });
    this.changed(ports);
  }
}
