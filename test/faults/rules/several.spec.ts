import { describe, expect, it } from 'vitest';
import type { HistoryEvent } from '../../checker/history.js';
import { APPLIED, applies } from './applied.js';
import { judge } from './judge.js';
import { withoutLostObjects } from './lost-objects.js';
import { overlapsIn } from './overlaps.js';

const KEY = 'lock:a';

/** One caller in its lock, as a worker writes it down. */
const section = (at: number, process: string, token: number, until: number): HistoryEvent[] => {
  const call = `${process}.c${token}`;
  const lease = `${process}.L${token}`;
  return [
    { type: 'call', at: at - 2, process, call, keys: [KEY], waitMs: 500, style: 'withLock' },
    { type: 'granted', at, process, call, lease, parts: [{ key: KEY, token }] },
    { type: 'believes', at, process, lease, key: KEY, until },
    { type: 'ended', at: until, process, lease },
  ];
};

const forced = (from: number, to: number): HistoryEvent[] => [
  { type: 'request', at: from, process: 'w3', request: 'w3#1', what: 'forceUnlock', keys: [KEY] },
  { type: 'reply', at: to, process: 'w3', request: 'w3#1', outcome: 'true' },
];

const rulesOn = (...events: HistoryEvent[][]): string[] =>
  judge(events.flat(), { shape: 'quorum', instances: new Map(), watchdogMs: 0 }).map(({ rule }) => rule);

const overlapping = [...section(1_000, 'w1', 1, 2_000), ...section(1_500, 'w2', 2, 1_600)];

describe('of servers that nobody watches', () => {
  it('two holders of one lock are seen', () => {
    expect(rulesOn(overlapping)).toEqual(['exclusion']);
  });

  it('but for those of whom one had it when it was forced open', () => {
    expect(rulesOn(overlapping, forced(1_400, 1_450))).toEqual([]);
    expect(rulesOn(overlapping, forced(700, 1_450))).toEqual([]);
  });

  it('and not because it was forced open before either of them had it', () => {
    expect(rulesOn(overlapping, forced(100, 150))).toEqual(['exclusion']);
  });

  it('histories of any length are read', () => {
    const notes = Array.from({ length: 200_000 }, (_, at): HistoryEvent => ({ type: 'note', at, text: '' }));
    expect(rulesOn(notes, overlapping)).toEqual(['exclusion']);
  });

  it('rules that go by what a store did say nothing, and the table says so', () => {
    const stay: HistoryEvent[] = [
      { type: 'hold', at: 1_000, key: KEY, owner: 'w1:1', token: 1 },
      { type: 'free', at: 1_100, key: KEY, owner: 'w1:1', how: 'expired' },
    ];
    expect(rulesOn(section(1_000, 'w1', 1, 2_000), stay)).toEqual([]);
    expect(applies('foundation', 'one')).toBe(true);
    expect(applies('foundation', 'quorum')).toBe(false);
  });

  it('a rule that the table does not know is an error, not silence', () => {
    expect(() => applies('unheard of', 'one')).toThrow('nobody says on which topologies');
    expect(new Set(APPLIED.map(({ rule }) => rule)).size).toBe(APPLIED.length);
  });
});

describe('overlaps', () => {
  const promotion: HistoryEvent = { type: 'unprotected', at: 900, until: 3_000, why: 'a promotion' };

  it('are counted where they may happen, too', () => {
    expect(rulesOn([...overlapping, promotion])).toEqual([]);
    expect(overlapsIn([...overlapping, promotion])).toBe(1);
  });

  it('are none of a lock that was forced open', () => {
    expect(overlapsIn([...overlapping, ...forced(1_400, 1_450)])).toBe(0);
  });
});

describe('what was done with a semaphore', () => {
  const use = (at: number, key: string, name: string): HistoryEvent[] => [
    { type: 'uses', at, process: 'w1', use: name, object: 'semaphore', key, what: 'take', amount: 1 },
    { type: 'used', at: at + 10, process: 'w1', use: name, result: true },
  ];
  const loss: HistoryEvent = { type: 'unprotected', at: 5_000, until: 6_000, why: 'a promotion' };

  it('is left out where a server may have lost some of it, and nowhere else', () => {
    const [before, during] = [use(100, 'lock:gate-1', 'u1'), use(5_500, 'lock:gate-2', 'u2')];
    expect(withoutLostObjects([...before, loss, ...during])).toEqual([...before, loss]);
    expect(withoutLostObjects([...before, ...during])).toEqual([...before, ...during]);
  });
});
