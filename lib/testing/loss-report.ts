import type { Doubt, UnfencedReason, WatchedCall } from './connection-state.js';

/** A write that went on without its lock and without a fence, or a call that could not be seen. */
export interface UnfencedWrite extends WatchedCall {
  /** What is wrong with it. */
  readonly why: UnfencedReason;
  /** The call before which the lock was lost. Empty in a run without a loss. */
  readonly lostBefore: string;
  /** Number of that call in the scenario, from 1 on. 0 in a run without a loss. */
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
    /** The writes that went on without lock and fence, and the calls that could not be seen. Empty: all is well. */
    readonly unfenced: readonly UnfencedWrite[],
  ) {}

  /**
   * Throws an error with the text of the report if a write was not fenced, or a call was not seen.
   *
   * @example report.throwIfUnfenced();
   */
  throwIfUnfenced(): void {
    if (this.unfenced.length > 0) throw new Error(this.toString());
  }

  /** Returns the report as text: each write and each call that was not seen, its line, and where the lock was lost. */
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
    const all = [...groups.values()];
    const unseen = all.filter(([first]) => first!.why in DOUBTS);
    const seen = all.filter((group) => !unseen.includes(group));
    const part = (what: string, found: readonly UnfencedWrite[][], advice: string): string[] =>
      found.length > 0 ? [`${what} (${counts}):`, ...found.map(textOf), advice] : [];
    const were = unseen.length === 1 ? 'was' : 'were';
    return [
      ...part(`${countOf(seen.length, 'write')} went on unfenced after the lock was lost`, seen, ADVICE),
      ...part(
        `${countOf(unseen.length, 'call')} ${were} not seen, so the report may miss writes`,
        unseen,
        UNSEEN_ADVICE,
      ),
    ].join('\n');
  }
}

const ADVICE =
  'Call fenceTransaction(tx, lease) first in the transaction, give outside services an idempotency key, and list ' +
  'what needs no fence in except.';
const UNSEEN_ADVICE =
  'Await the work in the scenario, pass each client that writes in databases or writes, name methods that do nothing but ' +
  'write, and list what needs no look in except.';

const DOUBTS: Readonly<Record<Doubt, string>> = {
  rejected: 'it failed without its lock: it may have written before',
  opaque: 'it passed a fence: it may write outside of that transaction, or before',
  unwatched: 'it is a call of a client or of a kind that is not watched',
  unawaited: 'it went on when the scenario ended: await it, or end it',
};

/** The line and what it does there. The text of a statement may vary from run to run. */
const siteOf = ({ what, at, why }: UnfencedWrite): string =>
  `${why in DOUBTS ? why : ''}\n${at === undefined ? what : `${at}\n${what.split(' ')[0]}`}`;

/** Returns the text of the losses of one write. */
const textOf = (found: readonly UnfencedWrite[], at: number): string => {
  const [{ what, at: line = 'an unknown line', why }] = found as readonly [UnfencedWrite];
  const losses = found.filter(({ step }) => step > 0);
  const more = new Set(losses.map(({ step }) => step)).size - 1;
  const noticed = losses.some((loss) => loss.noticed);
  const texts = [
    why in DOUBTS && DOUBTS[why as Doubt],
    !(why in DOUBTS) &&
      losses.length < found.length &&
      'also without a loss: its lock was not held from before it was sent until its reply',
    losses[0] &&
      `lost before step ${losses[0].step}: ${losses[0].lostBefore}${more > 0 ? `, and at ${countOf(more, 'other step')}` : ''}`,
    losses[0] &&
      (noticed
        ? 'also with an aborted signal: the section went on'
        : 'only if the section does not know of the loss yet'),
  ];
  return [`${at + 1}. ${what}`, `at ${line}`, ...texts.filter((text) => text)].join('\n   ');
};
