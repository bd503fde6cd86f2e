import type { WatchedCall } from './connection-state.js';

/** A write that went on after the lock of its section was lost, without a fence. */
export interface UnfencedWrite extends WatchedCall {
  /** The call before which the lock was lost. */
  readonly lostBefore: string;
  /** Number of that call in the scenario, from 1 on. */
  readonly step: number;
  /** Whether the signal of the lease was aborted. False: the process was paused, and did not know of the loss. */
  readonly noticed: boolean;
}

const countOf = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** What `testing.loseEverywhere` found. */
export class LossReport {
  /** @internal */
  constructor(
    /** Number of watched calls under the lock: the lock was lost before each of them. */
    readonly steps: number,
    /** How often the scenario ran. */
    readonly runs: number,
    /** Number of writes under the lock in the run without a loss. */
    readonly writes: number,
    /** How many runs ended with an error. */
    readonly failed: number,
    /** The writes that went on after a loss, and were not fenced. Empty: all is well. */
    readonly unfenced: readonly UnfencedWrite[],
  ) {}

  /**
   * Throws an error with the text of the report if a write was not fenced.
   *
   * @example report.throwIfUnfenced();
   */
  throwIfUnfenced(): void {
    if (this.unfenced.length > 0) throw new Error(this.toString());
  }

  /** Returns the report as text: each unfenced write, its line, and where the lock was lost. */
  toString(): string {
    const { steps, runs, writes, failed } = this;
    const counts =
      `${countOf(steps, 'step')}, ${countOf(writes, 'write')}, ${countOf(runs, 'run')}, ` +
      `${failed} of them ended with an error`;
    if (this.unfenced.length === 0) return `No write went on unfenced after a loss of the lock (${counts}).`;
    const groups = new Map<string, UnfencedWrite[]>();
    for (const write of this.unfenced) {
      const id = siteOf(write);
      groups.set(id, [...(groups.get(id) ?? []), write]);
    }
    const listed = [...groups.values()].map(textOf);
    return [
      `${countOf(groups.size, 'write')} went on unfenced after the lock was lost (${counts}):`,
      ...listed,
      'Call fenceTransaction(tx, lease) first in the transaction, give outside services an idempotency key, and list ' +
        'what needs no fence in except.',
    ].join('\n');
  }
}

/** The line and what it does there. The text of a statement may vary from run to run. */
const siteOf = ({ what, at }: UnfencedWrite): string =>
  at === undefined ? what : `${at}\n${what.split(' ')[0]}`;

/** Returns the text of the losses of one write. */
const textOf = (losses: readonly UnfencedWrite[], at: number): string => {
  const [first] = losses as readonly [UnfencedWrite];
  const noticed = losses.some((loss) => loss.noticed);
  const more = new Set(losses.map(({ step }) => step)).size - 1;
  return (
    `${at + 1}. ${first.what}\n` +
    `   at ${first.at ?? 'an unknown line'}\n` +
    `   lost before step ${first.step}: ${first.lostBefore}${more > 0 ? `, and at ${countOf(more, 'other step')}` : ''}\n` +
    `   ${noticed ? 'also with an aborted signal: the section went on' : 'only if the section does not know of the loss yet'}`
  );
};
