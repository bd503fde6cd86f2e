import { StoreQueueEntry } from '../../../lib/core/seam/queue-entry.js';
import type { QueueEntryReply, Queued } from '../../../lib/core/seam/reply.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';

/** A place, and how it was left. */
export const newEntry = () => {
  const left: (StoreFailure | undefined)[] = [];
  const entry = new StoreQueueEntry((uncertain) => {
    left.push(uncertain);
    return Promise.resolve();
  });
  return { entry, left };
};

export const queued = (entry: StoreQueueEntry, position = 0, retryInMs = Infinity): Queued => ({
  status: 'queued',
  entry,
  position,
  retryInMs,
});

/** The answer that a place still stands. */
export const stillQueued = (
  position = 0,
  retryInMs = Infinity,
): Extract<QueueEntryReply, { readonly status: 'queued' }> => ({
  status: 'queued',
  position,
  retryInMs,
});
