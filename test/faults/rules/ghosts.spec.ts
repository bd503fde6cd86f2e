import { describe, expect, it } from 'vitest';
import { inOrder, type HistoryEvent } from '../../checker/history.js';
import { Past } from '../../checker/past.js';
import { ghosts } from './ghosts.rule.js';

const KEY = 'lock:a';
const OTHER = 'lock:b';
const process = 'w1';
const owner = 'instance:1';

const stay = (from: number, to: number): HistoryEvent[] => [
  { type: 'hold', at: from, key: KEY, owner, token: 1 },
  { type: 'free', at: to, key: KEY, owner, how: 'released' },
];

const call = (at: number, keys: readonly string[], waitMs: number): HistoryEvent => {
  return { type: 'call', at, process, call: 'c1', keys, waitMs, style: 'withLock' };
};

const granted = (at: number): HistoryEvent => {
  const parts = [
    { key: KEY, token: 1 },
    { key: OTHER, token: 1 },
  ];
  return { type: 'granted', at, process, call: 'c1', lease: 'L1', parts };
};

const refused = (at: number): HistoryEvent => ({ type: 'refused', at, process, call: 'c1' });
const ended = (at: number): HistoryEvent => ({ type: 'ended', at, process, lease: 'L1' });

const ghostsIn = (...events: (HistoryEvent | HistoryEvent[])[]): number =>
  [...ghosts(new Past(inOrder(events.flat())), () => process)].length;

describe('a hold that stays for long', () => {
  it('is a ghost when nobody ever had it', () => {
    expect(ghostsIn(stay(0, 1_200))).toBe(0);
    expect(ghostsIn(stay(0, 1_400))).toBe(1);
  });

  it('is none while somebody has it, and is one when it stays after', () => {
    const section = [call(0, [KEY, OTHER], 500), granted(1), ended(2_000)];
    expect(ghostsIn(section, stay(0, 2_001))).toBe(0);
    expect(ghostsIn(section, stay(0, 3_400))).toBe(1);
  });

  it('is none while its caller waits for the other of its keys, and is one when it stays after', () => {
    const waiting = call(0, [KEY, OTHER], 1_800);
    expect(ghostsIn(waiting, refused(1_800), stay(1, 1_801))).toBe(0);
    expect(ghostsIn(waiting, refused(1_800), stay(1, 3_200))).toBe(1);
  });

  it('is not excused by a caller who waits for that key alone, or for others', () => {
    expect(ghostsIn(call(0, [KEY], 1_800), refused(1_800), stay(1, 1_801))).toBe(1);
    expect(ghostsIn(call(0, [OTHER, 'lock:c'], 1_800), refused(1_800), stay(1, 1_801))).toBe(1);
  });
});
