import type { EventOf, HistoryEvent } from '../../checker/history.js';

/** How long before anybody is known not to be protected something may have been done that nobody else has heard of. */
const UNNOTICED_MS = 3_000;
/** What trouble is called in which a replica takes over. */
export const PROMOTION = 'a promotion';

/** When a server may count something else than callers know of. */
const isLoss = (event: HistoryEvent): event is EventOf<'unprotected' | 'trouble'> =>
  (event.type === 'unprotected' && event.key === undefined) ||
  (event.type === 'trouble' && event.what === PROMOTION);

/**
 * Leaves out what was done with semaphores and latches that were used when servers did not stand by what they had said. One
 * server loses all it has in one moment, which the rules know of. Of two masters each counts for itself, and what is given
 * back is not waited for: no number is right.
 */
export const withoutLostObjects = (events: readonly HistoryEvent[]): readonly HistoryEvent[] => {
  const losses = events.filter(isLoss);
  if (losses.length === 0) return events;
  const used = new Map<string, { from: number; to: number }>();
  const keyOf = new Map<string, string>();
  for (const event of events) {
    if (event.type === 'uses') keyOf.set(event.use, event.key);
    const key = event.type === 'uses' || event.type === 'used' ? keyOf.get(event.use) : undefined;
    if (key === undefined) continue;
    const span = used.get(key) ?? { from: event.at, to: event.at };
    used.set(key, { from: Math.min(span.from, event.at), to: Math.max(span.to, event.at) });
  }
  const isLost = (key: string): boolean => {
    const { from, to } = used.get(key)!;
    return losses.some((loss) => loss.at - UNNOTICED_MS < to && loss.until > from);
  };
  const lost = new Set([...used.keys()].filter(isLost));
  return events.filter(
    (event) =>
      !(event.type === 'uses' || event.type === 'used' || event.type === 'called off') ||
      !lost.has(keyOf.get(event.use)!),
  );
};
