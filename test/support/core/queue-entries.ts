import { StoreQueueEntry, type EntryWaiter } from '../../../lib/core/seam/store-queue-entry.js';
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

const IGNORED = (): void => undefined;

/** Hears of an entry what the test wants to know. */
export const waiterOf = (heard: Partial<EntryWaiter>): EntryWaiter => ({
  notified: IGNORED,
  missedNotification: IGNORED,
  looksSooner: IGNORED,
  entryFailed: IGNORED,
  ...heard,
});

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
