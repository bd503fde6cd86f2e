import { beforeEach, describe, expect, it } from 'vitest';
import { OwnEntry } from '../../../lib/core/acquire/own-entry.js';
import type { StoreQueueEntry, QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import { newEntry, queued, stillQueued } from '../../support/core/queue-entries.js';
import { claimOn } from '../../support/core/queue-on.js';

const GRANT: QueueEntryOutcome = { status: 'granted', validForMs: 10_000, token: 7 };

let entry: StoreQueueEntry;
let left: readonly unknown[];
let missed: number;

/** Where a process stands since a request that was sent at 1,000. */
const ownEntry = (position = 0, retryInMs = 500): OwnEntry =>
  new OwnEntry(claimOn('k'), 30_000, entry, queued(entry, position, retryInMs), 1_000, () => (missed += 1));

beforeEach(() => {
  ({ entry, left } = newEntry());
  missed = 0;
});

describe('the place of a process', () => {
  it('counts from the send of the last request that was answered "queued"', () => {
    const one = ownEntry();
    expect(one.queuedAt).toBe(1_000);
    one.replied(stillQueued(), 2_000);
    expect(one.queuedAt).toBe(2_000);
  });

  it('does not go back when the answer to an older request comes later', () => {
    const one = ownEntry(5);
    one.replied(stillQueued(2, 900), 3_000);
    one.replied(stillQueued(4, 100), 2_000);
    expect([one.queuedAt, one.position, one.lookAgainAt]).toEqual([3_000, 2, 3_900]);
  });

  it.each([
    [0, 1_500],
    [2, 1_500],
    [3, Infinity],
    [1_000, Infinity],
  ])(
    'behind %s others looks at the end of the hold in the way at %s: one of the first will have it',
    (position, at) => {
      expect(ownEntry(position).lookAgainAt).toBe(at);
    },
  );

  it('tells its outcome to the last who listens, and keeps the first one', () => {
    const one = ownEntry();
    const outcomes: string[] = [];
    one.onOutcome(() => outcomes.push('first'));
    one.onOutcome(() => outcomes.push('second'));
    entry.notify(GRANT);
    one.replied({ status: 'gone' }, 2_000);
    expect([outcomes, one.outcome]).toEqual([['second'], GRANT]);
  });

  it('knows what was told before anybody listened, and also what came before it was made', () => {
    entry.notify(GRANT);
    expect(ownEntry().outcome).toEqual(GRANT);
  });

  it('that a request finds granted has the grant since an unknown time', () => {
    const one = ownEntry();
    let outcomes = 0;
    one.onOutcome(() => (outcomes += 1));
    one.replied({ status: 'held' }, 2_000);
    expect([outcomes, one.outcome]).toEqual([1, { status: 'granted', validForMs: 0 }]);
    // The message of that grant comes later: it says nothing that counts any more.
    entry.notify(GRANT);
    one.replied(stillQueued(), 3_000);
    expect([outcomes, one.outcome, one.queuedAt]).toEqual([1, { status: 'granted', validForMs: 0 }, 3_000]);
  });

  it('is gone when the answer says so, also the answer to an older request', () => {
    const one = ownEntry();
    one.replied(stillQueued(), 3_000);
    one.replied({ status: 'gone' }, 2_000);
    expect(one.outcome).toEqual({ status: 'gone' });
  });

  it('tells that the store may have missed its outcome', () => {
    const one = ownEntry();
    entry.mayHaveMissed();
    entry.mayHaveMissed();
    expect([missed, one.outcome]).toEqual([2, undefined]);
  });

  it('that is left in the store notifies no caller any more', async () => {
    const one = ownEntry();
    let outcomes = 0;
    one.onOutcome(() => (outcomes += 1));
    await one.leave().leave();
    entry.notify(GRANT);
    expect([outcomes, left]).toEqual([0, [undefined]]);
  });
});
