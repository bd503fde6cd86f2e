import type { Hold } from '../lease/hold.js';
import type { SlowWait } from '../wait/slow-waits.js';
import type { Holders } from '../holders/holders.js';
import type { LockEventHub, LockLogger } from '../report/lock-events.js';
import type { ShowKey } from '../util/shown-key.js';

const REMEDY = 'locks.inspect() and the event "waiting" show the holder.';

/** Reports callers that wait, and holders that hold, for long: an event for each, and a line of the debug log. */
export class SlowReports {
  constructor(
    private readonly events: LockEventHub,
    private readonly logger: Required<LockLogger>,
    private readonly shown: ShowKey,
    private readonly holders: Pick<Holders, 'of'>,
  ) {}

  /** The callers that became slow at the same time. Of each key there is one line. */
  readonly waits = (slow: readonly SlowWait[]): void => {
    const counts = new Map<string, number>();
    for (const one of slow) {
      if (this.events.has('waiting')) void this.emitWaiting(one);
      counts.set(one.key, (counts.get(one.key) ?? 0) + 1);
    }
    for (const [key, count] of counts) {
      const { label, waitedMs } = slow.find((one) => one.key === key)!;
      const callers = count === 1 ? 'A caller waits' : `${count} callers wait`;
      const first = `the first (${label}) for ${waitedMs} ms (slowWaitMs)`;
      this.logger.debug(`${callers} for "${this.shown(key)}", ${first}. ${REMEDY}`);
    }
  };

  private async emitWaiting(slow: SlowWait): Promise<void> {
    const { key, kind, label, waitedMs, waitersAhead, heldAs } = slow;
    const holder = await this.holders.of(slow.finalKey);
    this.events.emit('waiting', () => ({
      ...{ key: this.shown(key), kind, label, waitedMs, waitersAhead },
      ...(heldAs && { heldAs }),
      ...(holder && { holder }),
    }));
  }

  readonly hold = ({ key, claim, label }: Hold, heldMs: number): void => {
    this.events.emit('slow-hold', () => ({ key: this.shown(key), kind: claim.kind, label, heldMs }));
    this.logger.debug(
      `"${this.shown(key)}" (${label}) has been held for ${heldMs} ms (slowHoldMs), and still is.`,
    );
  };
}
