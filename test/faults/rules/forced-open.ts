import type { EventOf, HistoryEvent } from '../../checker/history.js';
import { LONGEST_LEASE_MS } from '../settings.js';

/** What was given before a key is forced open concerns that; at which moment of a slow request it was is not known. */
const STEP_MS = 100;

/**
 * Where nobody watches the servers, that a key was forced open is known from who did it: at some moment of its request. From
 * then on those who had it may go on until they are told, or their leases are over.
 */
export const withForced = (events: readonly HistoryEvent[]): readonly HistoryEvent[] => {
  const replies = new Map(
    events.flatMap((event) => (event.type === 'reply' ? [[event.request, event.at] as const] : [])),
  );
  const end = events.reduce((latest, { at }) => Math.max(latest, at), 0);
  return events.flatMap((event) => {
    if (event.type !== 'request' || event.what !== 'forceUnlock') return [event];
    return [event, ...forced(event, replies.get(event.request) ?? end)];
  });
};

const forced = ({ at: from, keys }: EventOf<'request'>, repliedAt: number): EventOf<'unprotected'>[] => {
  const until = repliedAt + LONGEST_LEASE_MS;
  const moments = Array.from(
    { length: Math.floor((repliedAt - from) / STEP_MS) + 1 },
    (_, i) => from + i * STEP_MS,
  );
  return keys.flatMap((key) =>
    moments.map((at) => ({ type: 'unprotected', at, key, until, why: 'forced open' }) as const),
  );
};
