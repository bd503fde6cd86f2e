import { beforeEach, describe, expect, it } from 'vitest';
import { OwnEntry } from '../../../lib/core/acquire/own-entry.js';
import type { StoreQueueEntry, QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import { newPlace, queued, stands } from '../../support/core/queue-entries.js';
import { claimOn } from '../../support/core/queue-on.js';

const GRANT: QueueEntryOutcome = { status: 'granted', validForMs: 10_000, token: 7 };

let place: StoreQueueEntry;
let left: readonly unknown[];
let doubts: number;

/** Where a process stands since a request that was sent at 1,000. */
const standing = (position = 0, retryInMs = 500): OwnEntry =>
  new OwnEntry(claimOn('k'), 30_000, place, queued(place, position, retryInMs), 1_000, () => (doubts += 1));

beforeEach(() => {
  ({ place, left } = newPlace());
  doubts = 0;
});

describe('the place of a process', () => {
  it('counts from the send of the last request that was answered "queued"', () => {
    const one = standing();
    expect(one.queuedAt).toBe(1_000);
    one.replied(stands(), 2_000);
    expect(one.queuedAt).toBe(2_000);
  });

  it('does not go back when the answer to an older request comes later', () => {
    const one = standing(5);
    one.replied(stands(2, 900), 3_000);
    one.replied(stands(4, 100), 2_000);
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
      expect(standing(position).lookAgainAt).toBe(at);
    },
  );

  it('tells its outcome to the last who listens, and keeps the first one', () => {
    const one = standing();
    const heard: string[] = [];
    one.onOutcome(() => heard.push('first'));
    one.onOutcome(() => heard.push('second'));
    place.notify(GRANT);
    one.replied({ status: 'gone' }, 2_000);
    expect([heard, one.outcome]).toEqual([['second'], GRANT]);
  });

  it('knows what was told before anybody listened, and also what came before it was made', () => {
    place.notify(GRANT);
    expect(standing().outcome).toEqual(GRANT);
  });

  it('that a request finds granted has the grant since an unknown time', () => {
    const one = standing();
    let heard = 0;
    one.onOutcome(() => (heard += 1));
    one.replied({ status: 'held' }, 2_000);
    expect([heard, one.outcome]).toEqual([1, { status: 'granted', validForMs: 0 }]);
    // The message of that grant comes later: it says nothing that counts any more.
    place.notify(GRANT);
    one.replied(stands(), 3_000);
    expect([heard, one.outcome, one.queuedAt]).toEqual([1, { status: 'granted', validForMs: 0 }, 3_000]);
  });

  it('is gone when the answer says so, also the answer to an older request', () => {
    const one = standing();
    one.replied(stands(), 3_000);
    one.replied({ status: 'gone' }, 2_000);
    expect(one.outcome).toEqual({ status: 'gone' });
  });

  it('tells that the store may have missed its outcome', () => {
    const one = standing();
    place.mayHaveMissed();
    place.mayHaveMissed();
    expect([doubts, one.outcome]).toEqual([2, undefined]);
  });

  it('that is left in the store notifies no caller any more', async () => {
    const one = standing();
    let heard = 0;
    one.onOutcome(() => (heard += 1));
    await one.leave().leave();
    place.notify(GRANT);
    expect([heard, left]).toEqual([0, [undefined]]);
  });
});
