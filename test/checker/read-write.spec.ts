import { describe, expect, it } from 'vitest';
import { violationsIn } from './checker.js';
import type { HistoryEvent, Mode } from './history.js';

const rulesOf = (...events: readonly (readonly HistoryEvent[])[]): string[] => [
  ...new Set(violationsIn(events.flat()).map(({ rule }) => rule)),
];

const nothing: string[] = [];

/** A hold as the store has it. */
const stay = (mode: Mode, owner: string, from: number, to: number, token?: number): HistoryEvent[] => [
  { type: 'hold', at: from, key: 'k', owner, mode, token },
  { type: 'free', at: to, key: 'k', owner, how: 'released' },
];

const call = (name: string, process: string, mode: Mode, at: number, waitMs = 10_000): HistoryEvent => ({
  type: 'call',
  at,
  process,
  call: name,
  keys: ['k'],
  waitMs,
  style: 'acquire',
  mode,
});

/** The same caller's lease: a reader knows its hold by the owner, and a writer by the token. */
const lease = (
  name: string,
  process: string,
  has: string | number,
  from: number,
  to: number,
): HistoryEvent[] => [
  {
    type: 'granted',
    at: from,
    process,
    call: name,
    lease: `L${name}`,
    parts: [{ key: 'k', ...(typeof has === 'string' ? { token: 0, owner: has } : { token: has }) }],
  },
  { type: 'believes', at: from, process, lease: `L${name}`, key: 'k', until: to },
  { type: 'ended', at: to, process, lease: `L${name}` },
];

const refused = (name: string, process: string, at: number): HistoryEvent => ({
  type: 'refused',
  at,
  process,
  call: name,
});

/** A question to the store about one owner, and the answer. */
const requested = (
  what: 'acquire' | 'keep' | 'leave',
  mode: Mode,
  owner: string,
  [from, to]: readonly [number, number],
  outcome: string,
): HistoryEvent[] => {
  const [process] = owner.split(':') as [string];
  const request = `${what} of ${owner} at ${from}`;
  return [
    { type: 'request', at: from, process, request, what, keys: ['k'], owners: [owner], mode },
    { type: 'reply', at: to, process, request, outcome },
  ];
};

describe('of a read-write lock', () => {
  it('the store gives nobody a hold beside a writer, whatever callers know of it', () => {
    const readers = [stay('read', 'p1:1', 0, 50), stay('read', 'p2:1', 10, 60)];
    expect(rulesOf([call('a', 'p1', 'write', 0, 0), refused('a', 'p1', 1)], ...readers)).toEqual(nothing);
    expect(rulesOf(...readers, stay('write', 'p3:1', 60, 70, 1))).toEqual(nothing);
    expect(rulesOf(...readers, stay('write', 'p3:1', 55, 70, 1))).toEqual(['exclusion']);
    expect(rulesOf(stay('write', 'p3:1', 0, 20, 1), stay('write', 'p4:1', 10, 30, 2))).toEqual(['exclusion']);
  });

  it('a reader believes in its own hold, not in that of another one', () => {
    const reader = [call('a', 'p1', 'read', 0), ...lease('a', 'p1', 'p1:1', 1, 50)];
    expect(rulesOf(reader, stay('read', 'p1:1', 1, 50), stay('read', 'p2:1', 10, 90))).toEqual(nothing);
    expect(rulesOf(reader, stay('read', 'p1:1', 1, 30), stay('read', 'p2:1', 10, 90))).toEqual([
      'foundation',
    ]);
    expect(rulesOf(reader, stay('read', 'p2:1', 1, 90))).toEqual(['tokens']);
  });

  it('a writer that downgrades reads from its request on, also when its process stands still meanwhile', () => {
    const reader = [call('b', 'p2', 'read', 60), ...lease('b', 'p2', 'p2:1', 65, 90)];
    const writer = [call('a', 'p1', 'write', 0), ...lease('a', 'p1', 1, 1, 100)];
    const downgrades: HistoryEvent = { type: 'downgrades', at: 80, process: 'p1', lease: 'La' };
    const frozen: HistoryEvent = { type: 'frozen', at: 50, until: 80, process: 'p1', uninterrupted: true };
    expect(rulesOf(writer, reader, [downgrades])).toEqual(['exclusion']);
    expect(rulesOf(writer, reader, [downgrades, frozen])).toEqual(nothing);
    expect(rulesOf(writer, reader, [downgrades, { ...frozen, uninterrupted: false }])).toEqual(['exclusion']);
  });

  it('a hold is joined for the time of a turn', () => {
    const joined = (at: number) => [
      call('a', 'p1', 'read', 0),
      ...lease('a', 'p1', 'p1:1', 1, 200),
      call('b', 'p1', 'read', at),
      ...lease('b', 'p1', 'p1:1', at, 200),
    ];
    expect(rulesOf(joined(51), stay('read', 'p1:1', 1, 200))).toEqual(nothing);
    expect(rulesOf(joined(60), stay('read', 'p1:1', 1, 200))).toEqual(['hand-off batch']);
  });

  it('a reader is not kept out by readers, and a writer is', () => {
    const others = stay('read', 'p2:1', 0, 1_000);
    const waits = (mode: Mode) => [call('a', 'p1', mode, 10), refused('a', 'p1', 500)];
    expect(rulesOf(others, waits('read'))).toContain('promptness');
    expect(rulesOf(others, waits('read'))).toContain('busy');
    expect(rulesOf(others, waits('write'))).toEqual(nothing);
  });

  it('but by a writer that waits, until it leaves the line', () => {
    const others = stay('read', 'p2:1', 0, 1_000);
    const writer = [...requested('acquire', 'write', 'p3:1', [1, 2], 'queued')];
    const reader = [call('a', 'p1', 'read', 10), refused('a', 'p1', 700)];
    expect(rulesOf(others, writer, reader)).toEqual(nothing);
    const leaves = requested('leave', 'write', 'p3:1', [300, 301], 'was left');
    expect(rulesOf(others, writer, leaves, reader)).toEqual(['promptness']);
  });

  it('nobody passes who stands in line and is kept out by that', () => {
    const holder = stay('write', 'p9:1', 0, 100, 1);
    const queued = (mode: Mode) => requested('acquire', mode, 'p3:1', [1, 2], 'queued');
    const later = (mode: Mode) => [
      call('a', 'p1', mode, 10),
      ...requested('acquire', mode, 'p1:1', [10, 120], 'granted'),
      ...stay(mode, 'p1:1', 110, 200, 2),
      ...lease('a', 'p1', mode === 'read' ? 'p1:1' : 2, 120, 200),
    ];
    expect(rulesOf(holder, queued('write'), later('read'))).toEqual(['overtaking']);
    expect(rulesOf(holder, queued('read'), later('write'))).toEqual(['overtaking']);
    expect(rulesOf(holder, queued('read'), later('read'))).toEqual(nothing);
    // It came first, or the other one may have left, or have lost its place.
    expect(rulesOf(holder, requested('acquire', 'write', 'p3:1', [9, 20], 'queued'), later('read'))).toEqual(
      nothing,
    );
    const leaves = requested('leave', 'write', 'p3:1', [105, 130], 'was left');
    expect(rulesOf(holder, queued('write'), leaves, later('read'))).toEqual(nothing);
    const lost: HistoryEvent = {
      type: 'unprotected',
      at: 50,
      until: 60,
      why: 'the server has lost its data',
    };
    expect(rulesOf(holder, queued('write'), [lost], later('read'))).toEqual(nothing);
  });
});
