import { timelineOf } from '../../checker/timeline.js';
import { inOrder, type HistoryEvent } from '../../checker/history.js';
import type { Violation } from '../../checker/violation.js';
import { shortestPiece } from './shortest-piece.js';

export interface Failure {
  /** What failed, for a person. */
  readonly title: string;
  /** How to see it again. */
  readonly again: string;
  /** The schedule, one line for each fault. */
  readonly schedule: string;
  readonly events: readonly HistoryEvent[];
  readonly violations: readonly Violation[];
  /** Judges a piece of the history as the whole was judged. */
  readonly judge: (events: readonly HistoryEvent[]) => readonly Violation[];
}

const MAX_SHOWN = 3;
/** More than this nobody reads. */
const MAX_LINES = 120;

/** One of each rule: a single mistake often breaks the same promise many times. */
const firstOfEach = (violations: readonly Violation[]): Violation[] => {
  const seen = new Set<string>();
  return violations.filter(({ rule }) => !seen.has(rule) && seen.add(rule)).slice(0, MAX_SHOWN);
};

const shortened = (text: string): string => {
  const lines = text.split('\n');
  if (lines.length <= MAX_LINES) return text;
  const half = MAX_LINES / 2;
  const left = `… ${lines.length - 2 * half} lines …`;
  return [...lines.slice(0, half), left, ...lines.slice(-half)].join('\n');
};

const indented = (text: string): string => text.replace(/^/gm, '  ');

/** All that somebody needs who has to find out what went wrong. */
export const reportOf = ({ title, again, schedule, events, violations, judge }: Failure): string => {
  const pieces = firstOfEach(violations).map((violation) => {
    const piece = shortestPiece(events, violation, judge);
    return [
      `${violation.rule}: ${violation.text}`,
      `The shortest piece of history that shows it (${piece.events.length} of ${events.length} events, times in ms):`,
      indented(shortened(timelineOf(inOrder(piece.events), [piece.violation]))),
    ].join('\n');
  });
  return [
    `${title}: ${violations.length} ${violations.length === 1 ? 'violation' : 'violations'}`,
    `Again: ${again}`,
    `What was done:\n${indented(schedule)}`,
    ...pieces,
  ].join('\n\n');
};
