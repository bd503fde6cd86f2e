import type { Past } from '../past.js';
import { joined, type Span } from '../spans.js';

/** How long a place in the line of a read-write lock stands that nobody keeps, and a late question is under way, in ms. */
const OUTLIVES_MS = 8_000;

/** Answers after which nothing of an owner is in line. */
const IS_OVER = /^(granted|taken|was|gone|held)/;

/**
 * When a place of a fair or of a read-write lock may have stood in line for which nobody asked any more: its process was
 * gone, did not hear what became of its question, or could not give it up. Such a place counts until its time is over.
 */
export const deadEntries = (past: Past, key: string): Span[] => {
  /** For each owner that may stand in line, since when nobody asks for it. */
  const entries = new Map<string, { readonly process: string; deadSince: number; diesAt: number }>();
  const spans: Span[] = [];
  const end = (owner: string, at: number): void => {
    const one = entries.get(owner);
    if (!one) return;
    entries.delete(owner);
    const from = Math.min(one.deadSince, past.crashedAt(one.process));
    const to = Math.min(at, one.diesAt);
    if (from < to) spans.push({ from, to });
  };
  for (const { process, what, keys, owners, mode, outcome, from, to } of past.requests) {
    for (const [i, owner] of (owners ?? []).entries()) {
      if (keys[i] !== key) continue;
      const reply = outcome?.split(' ')[i] ?? 'unknown';
      const isLeft = ['release', 'undo', 'leave'].includes(what) || (reply === 'unknown' && what !== 'keep');
      const isNew = what === 'acquire' && !entries.has(owner);
      if (isNew) entries.set(owner, { process, deadSince: Infinity, diesAt: Infinity });
      const one = entries.get(owner);
      if (one && isLeft) one.deadSince = Math.min(one.deadSince, from);
      if (one && mode && (what === 'acquire' || what === 'keep')) one.diesAt = to + OUTLIVES_MS;
      // What was not done to a place leaves it as it is.
      if (IS_OVER.test(reply) || (isNew && reply === 'not-executed')) end(owner, to);
    }
  }
  for (const owner of [...entries.keys()]) end(owner, Infinity);
  return joined(spans);
};
