import { beforeEach, describe, expect, it } from 'vitest';
import type { QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import { relayed, type StoreQueueEntry } from '../../../lib/core/seam/store-queue-entry.js';
import { newEntry, queued, stillQueued, waiterOf } from '../../support/core/queue-entries.js';
import { claimOn } from '../../support/core/queue-on.js';

const GRANT: QueueEntryOutcome = { status: 'granted', validForMs: 10_000, token: 7 };

let entry: StoreQueueEntry;
let left: readonly unknown[];
let heard: string[];

/** Where a process stands since a request that was sent at 1,000. */
const enqueued = (position = 0, retryInMs = 500, one = entry): StoreQueueEntry => {
  const waiter = waiterOf({
    notified: () => heard.push('outcome'),
    missedNotification: () => heard.push('missed'),
    looksSooner: () => heard.push('sooner'),
  });
  one.enqueued(claimOn('k'), 30_000, queued(one, position, retryInMs), 1_000, waiter);
  return one;
};

beforeEach(() => {
  ({ entry, left } = newEntry());
  heard = [];
});

describe('the place of a process', () => {
  it('counts from the send of the last request that was answered "queued"', () => {
    const one = enqueued();
    expect(one.queuedAt).toBe(1_000);
    one.replied(stillQueued(), 2_000);
    expect(one.queuedAt).toBe(2_000);
  });

  it('does not go back when the answer to an older request comes later', () => {
    const one = enqueued(5);
    one.replied(stillQueued(2, 900), 3_000);
    one.replied(stillQueued(4, 100), 2_000);
    expect([one.queuedAt, one.position, one.lookAgainAt]).toEqual([3_000, 2, 3_900]);
    expect(heard).toEqual(['sooner']);
  });

  it.each([
    [0, 1_500],
    [2, 1_500],
    [3, Infinity],
    [1_000, Infinity],
  ])(
    'behind %s others looks at the end of the hold in the way at %s: one of the first will have it',
    (position, at) => {
      expect(enqueued(position).lookAgainAt).toBe(at);
    },
  );

  it('tells its outcome once, and keeps the first one', () => {
    const one = enqueued();
    entry.notify(GRANT);
    one.replied({ status: 'gone' }, 2_000);
    expect([heard, one.outcome]).toEqual([['outcome'], GRANT]);
  });

  it('knows what was told before anybody listened, and also what came before it was made', () => {
    entry.notify(GRANT);
    expect(enqueued().outcome).toEqual(GRANT);
  });

  it('that a request finds granted has the grant since an unknown time', () => {
    const one = enqueued();
    one.replied({ status: 'held' }, 2_000);
    expect([heard, one.outcome]).toEqual([['outcome'], { status: 'granted', validForMs: 0 }]);
    // The message of that grant comes later: it says nothing that counts any more.
    entry.notify(GRANT);
    one.replied(stillQueued(), 3_000);
    expect([heard, one.outcome, one.queuedAt]).toEqual([
      ['outcome'],
      { status: 'granted', validForMs: 0 },
      3_000,
    ]);
  });

  it('is gone when the answer says so, also the answer to an older request', () => {
    const one = enqueued();
    one.replied(stillQueued(), 3_000);
    one.replied({ status: 'gone' }, 2_000);
    expect(one.outcome).toEqual({ status: 'gone' });
  });

  it('tells that the store may have missed its outcome', () => {
    const one = enqueued();
    entry.mayHaveMissed();
    entry.mayHaveMissed();
    expect([heard, one.outcome]).toEqual([['missed', 'missed'], undefined]);
  });

  it('that is left in the store notifies no caller any more', async () => {
    await enqueued().leave();
    entry.notify(GRANT);
    expect([heard, left]).toEqual([[], [undefined]]);
  });

  it('that another one has the place of notifies no caller any more', () => {
    enqueued().stopListening();
    entry.mayHaveMissed();
    entry.notify(GRANT);
    expect(heard).toEqual([]);
  });

  it('of a store with its own kind of entries hears what those hear, and is left with them', async () => {
    const relay = enqueued(0, 500, relayed(entry));
    entry.mayHaveMissed();
    entry.notify(GRANT);
    await relay.leave();
    expect([heard, relay.outcome, left]).toEqual([['missed', 'outcome'], GRANT, [undefined]]);
  });
});
