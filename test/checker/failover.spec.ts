import { describe, expect, it } from 'vitest';
import { violationsIn } from './checker.js';
import type { HistoryEvent } from './history.js';

const LIMIT_MS = 2_000;

const failoverOf = (outages: readonly { from: number; to: number }[]): HistoryEvent => ({
  type: 'failover',
  at: 100,
  what: 'a master is killed',
  outages,
  limitMs: LIMIT_MS,
  apps: [{ process: 'app1', connection: 'no connection' }],
});

/** An app asks and is rejected shortly before 5,000; the history goes on until 20,000. */
const rejected: readonly HistoryEvent[] = [
  { type: 'call', at: 4_990, process: 'app1', call: 'c', keys: ['k'], waitMs: 0, style: 'tryAcquire' },
  {
    type: 'refused',
    at: 5_000,
    process: 'app1',
    call: 'c',
    error: { name: 'LockStoreError', code: 'LOCK_STORE_FAILED', hasCause: true, message: 'no connection' },
  },
  { type: 'note', at: 20_000, text: 'the end' },
];

const served = (at: number): HistoryEvent => ({ type: 'served', at, process: 'app1', call: 'c' });

const textsOf = (...events: readonly HistoryEvent[]): string[] =>
  violationsIn([...rejected, ...events]).map(({ rule, text }) => `${rule}: ${text}`);

describe('after a failover an app', () => {
  const failover = failoverOf([{ from: 110, to: 3_100 }]);

  it('acquires a key within the limit, counted from when writes are accepted', () => {
    expect(textsOf(failover, served(3_100 + LIMIT_MS))).toEqual([]);
    expect(textsOf(failover, served(3_101 + LIMIT_MS))).toEqual([
      'failover: app1 (no connection) acquired a key again only after 2001 ms, after "a master is killed": the failover ' +
        'took 3000 ms, and 2000 ms more are allowed; at last: LOCK_STORE_FAILED: no connection',
    ]);
  });

  it('that acquires no key is named, with its connection, the fault and its last error', () => {
    expect(textsOf(failover)).toEqual([
      'failover: app1 (no connection) acquired no key again, after "a master is killed": the failover took 3000 ms, ' +
        'and 2000 ms more are allowed; at last: LOCK_STORE_FAILED: no connection',
    ]);
  });

  it('does not recover by a key that it acquired before', () => {
    expect(textsOf(failover, served(200))).toHaveLength(1);
  });

  it('has the same time after each further outage', () => {
    const twice = failoverOf([
      { from: 110, to: 3_100 },
      { from: 3_500, to: 9_000 },
    ]);
    expect(textsOf(twice, served(9_000 + LIMIT_MS))).toEqual([]);
    expect(textsOf(twice, served(3_200))).toHaveLength(1);
  });

  it('has to acquire a key where nothing took over, counted from the fault', () => {
    expect(textsOf(failoverOf([]), served(100 + LIMIT_MS))).toEqual([]);
    expect(textsOf(failoverOf([]), served(101 + LIMIT_MS))).toHaveLength(1);
  });

  it('may be later by the time in which its process stood still', () => {
    const frozen: HistoryEvent = { type: 'frozen', at: 4_000, until: 4_500, process: 'app1' };
    expect(textsOf(failover, frozen, served(3_600 + LIMIT_MS))).toEqual([]);
    expect(textsOf(failover, frozen, served(3_601 + LIMIT_MS))).toHaveLength(1);
  });

  it('is not judged when the history ends before', () => {
    const short = [failover, ...rejected.slice(0, 2)];
    expect(violationsIn(short)).toEqual([]);
  });
});
