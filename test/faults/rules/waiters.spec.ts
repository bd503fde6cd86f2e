import { describe, expect, it } from 'vitest';
import { inOrder, type HistoryEvent } from '../../checker/history.js';
import { Past } from '../../checker/past.js';
import { waiters } from './waiters.rule.js';

const KEY = 'lock:a';

/** A call that gives up after 3 s. */
const WAITER: readonly HistoryEvent[] = [
  { type: 'call', at: 7_000, process: 'w2', call: 'w2.c1', keys: [KEY], waitMs: 3_000, style: 'withLock' },
  {
    type: 'refused',
    at: 10_000,
    process: 'w2',
    call: 'w2.c1',
    error: { name: 'LockNotAcquiredError', code: 'LOCK_TAKEN', hasCause: false, message: 'taken' },
  },
];

/** A holder until a moment. */
const holder = (until: number): readonly HistoryEvent[] => [
  { type: 'call', at: 5_000, process: 'w1', call: 'w1.c1', keys: [KEY], waitMs: 500, style: 'withLock' },
  {
    type: 'granted',
    at: 5_010,
    process: 'w1',
    call: 'w1.c1',
    lease: 'w1.L1',
    parts: [{ key: KEY, token: 1 }],
  },
  { type: 'believes', at: 5_010, process: 'w1', lease: 'w1.L1', key: KEY, until: 20_000 },
  { type: 'ended', at: until, process: 'w1', lease: 'w1.L1' },
];

const found = (...events: readonly HistoryEvent[]): number => [...waiters(new Past(inOrder(events)))].length;

describe('a call that waits in vain', () => {
  it('is seen when no caller had the key in the end', () => {
    expect(found(...WAITER, ...holder(8_000))).toBe(1);
  });

  it('is none when a caller had the key', () => {
    expect(found(...WAITER, ...holder(9_000))).toBe(0);
  });

  it('is none when a call for several keys may have had the key, and waited for another one', () => {
    const several = (at: number): HistoryEvent => ({
      ...{
        type: 'call',
        process: 'w3',
        call: 'w3.c1',
        keys: [KEY, 'lock:b'],
        waitMs: 2_500,
        style: 'withLock',
      },
      at,
    });
    const refused: HistoryEvent = { type: 'refused', at: 10_500, process: 'w3', call: 'w3.c1' };
    expect(found(...WAITER, ...holder(8_000), several(8_100), refused)).toBe(0);
    expect(found(...WAITER, ...holder(8_000), several(5_000), { ...refused, at: 8_400 })).toBe(1);
  });

  it('is excused by trouble of any process', () => {
    const trouble = { type: 'trouble', at: 9_000, until: 9_800, what: 'cut off' } as const;
    expect(found(...WAITER, ...holder(8_000), { ...trouble, process: 'w1' })).toBe(0);
    expect(found(...WAITER, ...holder(8_000), { ...trouble, until: 9_100, process: 'w1' })).toBe(1);
  });

  it('is excused by a process that was killed, until its session has ended', () => {
    const gone = { type: 'gone', process: 'w1', how: 'crashed' } as const;
    expect(found(...WAITER, ...holder(8_000), { ...gone, at: 6_000 })).toBe(0);
    const killed = [...WAITER, ...holder(8_000).slice(0, 1), { ...gone, at: 3_000 }];
    expect(found(...killed)).toBe(1);
    const restart = { type: 'trouble', at: 4_000, what: 'leader killed' } as const;
    expect(found(...killed, { ...restart, until: 4_500 })).toBe(0);
    expect(found(...killed, { ...restart, at: 2_000, until: 3_200 })).toBe(1);
  });
});
