import type { Mode } from '../history.js';
import type { Past, Request } from '../past.js';
import { common } from '../spans.js';
import type { Violation } from '../violation.js';
import type { Rule } from './rule.js';
import { staysIn, type Stay } from './stays.js';

/** For how long a place certainly stands after the question that kept it was sent, in ms. */
const ENTRY_LIVES_MS = 4_900;

/** Where an owner stands in the line of a read-write lock, as far as its process knows for certain. */
interface QueueEntry {
  readonly key: string;
  readonly owner: string;
  readonly mode: Mode;
  /** When it asked for the first time. */
  readonly requestedAt: number;
  /** The questions that were answered "queued". */
  readonly kept: Request[];
  /** From when on it may be over. */
  overAt: number;
}

const entriesIn = (past: Past): ReadonlyMap<string, QueueEntry> => {
  const entries = new Map<string, QueueEntry>();
  for (const request of past.requests) {
    const { what, keys, owners, mode, outcome, from } = request;
    if (!mode || !owners) continue;
    for (const [i, owner] of owners.entries()) {
      const key = keys[i]!;
      const name = `${key} ${owner}`;
      const entry = entries.get(name) ?? { key, owner, mode, requestedAt: from, kept: [], overAt: Infinity };
      entries.set(name, entry);
      const reply = what === 'keep' ? outcome?.split(' ')[i] : outcome;
      if (reply === 'queued') entry.kept.push(request);
      // What is not known may be that it is over.
      else if (reply !== 'not-executed') entry.overAt = Math.min(entry.overAt, from);
    }
  }
  return entries;
};

/** Whether the place stood in line for certain all the time from a moment on. */
const wasQueued = ({ kept, overAt }: QueueEntry, since: number, until: number): boolean =>
  overAt > until &&
  kept.some(({ to }) => to < since) &&
  kept.some(({ from, to }) => to < until && until < from + ENTRY_LIVES_MS);

/** Who waits for a read-write lock, to read or to write, is not passed by those who come later and keep it out. */
export const overtaking: Rule = function* (past): Generator<Violation> {
  if (past.readWrite.size === 0) return;
  const entries = entriesIn(past);
  const lost = past.all('unprotected').filter(({ key }) => key === undefined);
  const isBefore = ({ key, owner, mode, from }: Stay, entry: QueueEntry): boolean => {
    if (entry.key !== key || entry.owner === owner || (mode === 'read' && entry.mode === 'read'))
      return false;
    const requestedAt = entries.get(`${key} ${owner}`)?.requestedAt;
    if (requestedAt === undefined || !wasQueued(entry, requestedAt, from)) return false;
    // The line may have been lost meanwhile, or be another one.
    return !lost.some(({ at, until }) =>
      common({ from: entry.requestedAt, to: from }, { from: at, to: until + 1 }),
    );
  };
  for (const stay of staysIn(past)) {
    if (stay.mode === undefined) continue;
    for (const entry of entries.values()) {
      if (!isBefore(stay, entry)) continue;
      const text = `${stay.owner} was let in to ${stay.mode} "${stay.key}" past ${entry.owner}, which stood in line to ${entry.mode}`;
      yield { rule: 'overtaking', at: stay.from, text };
    }
  }
};
