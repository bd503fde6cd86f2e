import { describe, expect, it } from 'vitest';
import { violationsIn } from './checker.js';
import type { ErrorSeen, HistoryEvent } from './history.js';
import { timelineOf } from './timeline.js';

type Part = Extract<HistoryEvent, { type: 'granted' }>['parts'][number];

const error = (code: string | undefined, name: string, hasCause = false): ErrorSeen => ({
  name,
  code,
  hasCause,
  message: 'in words',
});

const call = (at: number, name: string, process: string, waitMs: number | null, key = 'k'): HistoryEvent => ({
  type: 'call',
  at,
  process,
  call: name,
  keys: [key],
  waitMs,
  style: 'withLock',
});

const granted = (at: number, name: string, process: string, part: Partial<Part>): HistoryEvent => ({
  type: 'granted',
  at,
  process,
  call: name,
  lease: `L${name}`,
  parts: [{ key: 'k', token: 1, ...part }],
});

const believes = (at: number, name: string, process: string, until: number): HistoryEvent => ({
  type: 'believes',
  at,
  process,
  lease: `L${name}`,
  key: 'k',
  until,
});

const ended = (at: number, name: string, process: string): HistoryEvent => ({
  type: 'ended',
  at,
  process,
  lease: `L${name}`,
});

const announced = (at: number, name: string, process: string): HistoryEvent => ({
  type: 'announced',
  at,
  process,
  lease: `L${name}`,
});

const refused = (at: number, name: string, process: string, seen?: ErrorSeen): HistoryEvent => ({
  type: 'refused',
  at,
  process,
  call: name,
  error: seen,
});

const hold = (at: number, owner: string, token?: number, lastToken?: number): HistoryEvent => ({
  type: 'hold',
  at,
  key: 'k',
  owner,
  token,
  lastToken,
});

const free = (
  at: number,
  owner: string,
  how: 'released' | 'expired' | 'forced' | 'lost' = 'released',
): HistoryEvent => ({ type: 'free', at, key: 'k', owner, how });

const requested = (
  from: number,
  to: number,
  process: string,
  what = 'acquire',
  outcome = 'taken',
): HistoryEvent[] => [
  { type: 'request', at: from, process, request: `${process}#${from}`, what, keys: ['k'] },
  { type: 'reply', at: to, process, request: `${process}#${from}`, outcome },
];

const frozen = (at: number, process: string, until: number): HistoryEvent => ({
  type: 'frozen',
  at,
  process,
  until,
});

const unprotected = (at: number, until: number, key?: string): HistoryEvent => ({
  type: 'unprotected',
  at,
  until,
  key,
  why: 'a reason',
});

/** A caller that has the key from `from` to `to`, and knows it. */
const holder = (
  name: string,
  process: string,
  token: number,
  from: number,
  to: number,
  sharedWith?: string,
): HistoryEvent[] => [
  call(from, name, process, 100),
  granted(from, name, process, { token, sharedWith }),
  believes(from, name, process, to + 1_000),
  ended(to, name, process),
];

const rulesOf = (...events: (HistoryEvent | HistoryEvent[])[]): string[] => [
  ...new Set(violationsIn(events.flat()).map(({ rule }) => rule)),
];

const nothing: string[] = [];

describe('exclusion', () => {
  it('one after the other is in order', () => {
    expect(rulesOf(holder('a', 'p1', 1, 0, 10), holder('b', 'p2', 2, 10, 20))).toEqual(nothing);
  });

  it('two at the same time are not, in two processes or in one', () => {
    expect(rulesOf(holder('a', 'p1', 1, 0, 10), holder('b', 'p2', 2, 5, 20))).toEqual(['exclusion']);
    expect(rulesOf(holder('a', 'p1', 1, 0, 10), holder('b', 'p1', 2, 5, 20))).toEqual(['exclusion']);
  });

  it('readers may be many, but nobody is beside a writer, and siblings are never two', () => {
    const inMode = (mode: 'read' | 'write', events: readonly HistoryEvent[]): HistoryEvent[] =>
      events.map((event) => (event.type === 'call' ? { ...event, mode } : event));
    const first = holder('a', 'p1', 1, 0, 10);
    const second = holder('b', 'p2', 2, 5, 20);
    expect(rulesOf(inMode('read', first), inMode('read', second))).toEqual(nothing);
    expect(rulesOf(inMode('read', first), inMode('write', second))).toEqual(['exclusion']);
    expect(rulesOf(inMode('write', first), inMode('read', second))).toEqual(['exclusion']);
    expect(rulesOf(inMode('write', first), inMode('write', second))).toEqual(['exclusion']);
    expect(rulesOf(inMode('read', first), second)).toEqual(['exclusion']);
    const inside = (events: readonly HistoryEvent[]): HistoryEvent[] =>
      inMode('read', events).map((event) =>
        event.type === 'granted'
          ? { ...event, parts: event.parts.map((part) => ({ ...part, sharedWith: 'Lw' })) }
          : event,
      );
    const siblings = [holder('c', 'p1', 1, 10, 30), holder('d', 'p1', 1, 20, 40)].map(inside);
    const parent = inMode('write', holder('w', 'p1', 1, 0, 100));
    expect(rulesOf(parent, ...siblings)).toEqual(['exclusion']);
  });

  it('a belief ends with its time, with the announcement, and with the process', () => {
    const first = [call(0, 'a', 'p1', 0), granted(0, 'a', 'p1', {}), believes(0, 'a', 'p1', 10)];
    const second = holder('b', 'p2', 2, 12, 20);
    expect(rulesOf(first, announced(11, 'a', 'p1'), second)).toEqual(nothing);
    const longer = believes(5, 'a', 'p1', 500);
    expect(rulesOf(first, longer, announced(400, 'a', 'p1'), second)).toEqual(['exclusion']);
    expect(rulesOf(first, longer, announced(11, 'a', 'p1'), second)).toEqual(nothing);
    const crash: HistoryEvent = { type: 'gone', at: 11, process: 'p1', how: 'crashed' };
    expect(rulesOf(first, longer, crash, second)).toEqual(nothing);
  });

  it('overlaps are excused only while the store promises nothing about that key', () => {
    const both = [holder('a', 'p1', 1, 0, 30), holder('b', 'p2', 2, 10, 20)];
    expect(rulesOf(...both, unprotected(9, 30))).toEqual(nothing);
    expect(rulesOf(...both, unprotected(9, 30, 'k'))).toEqual(nothing);
    expect(rulesOf(...both, unprotected(9, 15))).toEqual(['exclusion']);
    expect(rulesOf(...both, unprotected(9, 30, 'another'))).toEqual(['exclusion']);
  });

  it('parent and child do not exclude each other, but siblings do', () => {
    const parent = holder('a', 'p1', 1, 0, 100);
    const child = holder('b', 'p1', 1, 10, 50, 'La');
    expect(rulesOf(parent, child)).toEqual(nothing);
    expect(rulesOf(parent, child, holder('c', 'p1', 1, 50, 60, 'La'))).toEqual(nothing);
    expect(rulesOf(parent, child, holder('c', 'p1', 1, 40, 60, 'La'))).toEqual(['exclusion']);
    expect(rulesOf(parent, child, holder('c', 'p1', 1, 20, 30, 'Lb'))).toEqual(nothing);
  });

  it('what clocks of different speed come to is no overlap', () => {
    expect(rulesOf(holder('a', 'p1', 1, 0, 11.5), holder('b', 'p2', 2, 10, 20))).toEqual(nothing);
  });
});

describe('foundation', () => {
  const stored = [hold(0, 'o1', 1), free(50, 'o1', 'expired')];

  it('nobody believes in what the store does not have any more, even when nobody else wants it', () => {
    expect(rulesOf(stored, holder('a', 'p1', 1, 0, 50))).toEqual(nothing);
    expect(rulesOf(stored, holder('a', 'p1', 1, 0, 60))).toEqual(['foundation']);
  });

  it('except while the store promises nothing', () => {
    expect(rulesOf(stored, unprotected(50, 60), holder('a', 'p1', 1, 0, 60))).toEqual(nothing);
    expect(rulesOf(stored, unprotected(50, 55), holder('a', 'p1', 1, 0, 60))).toEqual(['foundation']);
  });

  it('a hold that was given to its owner again goes on', () => {
    const again = [hold(0, 'o1', 1), hold(40, 'o1', 2), free(90, 'o1')];
    expect(rulesOf(again, holder('a', 'p1', 2, 40, 90))).toEqual(nothing);
  });
});

describe('tokens', () => {
  it('have to be known to come from the store, but for the last answers of one that ended', () => {
    const stored = [hold(0, 'o1', 5), free(10, 'o1'), hold(20, 'o2', 7), free(40, 'o2')];
    const late = holder('b', 'p2', 9, 60, 70);
    expect(rulesOf(stored, late)).toEqual(['tokens']);
    expect(rulesOf(stored, late, { type: 'unseen', at: 59 })).toEqual(nothing);
    expect(rulesOf(stored, late, { type: 'unseen', at: 61 })).toEqual(['tokens']);
    expect(rulesOf([...stored, { type: 'unseen', at: 59 }], holder('b', 'p2', 9, 1_060, 1_070))).toEqual([
      'tokens',
    ]);
  });

  it('grow from holder to holder', () => {
    expect(rulesOf(holder('a', 'p1', 5, 0, 10), holder('b', 'p2', 4, 10, 20))).toEqual(['tokens']);
    expect(rulesOf(holder('a', 'p1', 5, 0, 10), holder('b', 'p2', 5, 10, 20))).toEqual(['tokens']);
  });

  it('of the store grow from grant to grant, also between those that no caller has seen', () => {
    expect(rulesOf(hold(0, 'o1', 5), free(1, 'o1'), hold(2, 'o2', 6))).toEqual(nothing);
    expect(rulesOf(hold(0, 'o1', 5), free(1, 'o1'), hold(2, 'o2', 5))).toEqual(['tokens']);
  });

  it('a nested lease has that of its hold', () => {
    expect(rulesOf(holder('a', 'p1', 5, 0, 100), holder('b', 'p1', 5, 10, 20, 'La'))).toEqual(nothing);
  });
});

describe('turns', () => {
  const stored = [hold(0, 'o1', 1, 3), free(300, 'o1')];
  const [first, second] = [holder('a', 'p1', 1, 1, 20), holder('b', 'p1', 2, 20, 40)];

  it('a hold may go from lease to lease, for a while', () => {
    expect(rulesOf(stored, first, second, holder('c', 'p1', 3, 51, 90))).toEqual(nothing);
    expect(rulesOf(stored, first, second, holder('c', 'p1', 3, 53, 90))).toEqual(['hand-off batch']);
  });

  it('time in which the process stands still does not count', () => {
    expect(rulesOf(stored, first, frozen(41, 'p1', 80), holder('c', 'p1', 3, 90, 95))).toEqual(nothing);
  });

  it('each lease has a token that came with the hold', () => {
    expect(rulesOf(stored, first, holder('b', 'p1', 4, 20, 40))).toEqual(['tokens']);
    expect(rulesOf(stored, first, second, hold(310, 'o2', 3))).toEqual(['tokens']);
    expect(rulesOf(stored, first, second, hold(310, 'o2', 4))).toEqual(nothing);
  });

  it('nobody believes in the hold longer than the store has it, whoever has it by then', () => {
    expect(rulesOf([hold(0, 'o1', 1, 3), free(30, 'o1')], first, second)).toEqual(['foundation']);
  });
});

describe('the register', () => {
  const entry = (at: number, what: 'read' | 'write', token: number, base: number, version: number) =>
    ({ type: 'register', at, what, key: 'k', lease: 'La', token, accepted: true, base, version }) as const;

  it('accepts writes on top of the newest version', () => {
    expect(
      rulesOf(entry(0, 'write', 1, 0, 1), entry(1, 'read', 2, 1, 1), entry(2, 'write', 2, 1, 2)),
    ).toEqual(nothing);
  });

  it('a write on top of an older version loses an update', () => {
    expect(rulesOf(entry(0, 'write', 1, 0, 1), entry(1, 'write', 2, 0, 2))).toEqual(['lost update']);
  });

  it('a token below one that was seen is stale, whether that had read or written', () => {
    expect(rulesOf(entry(0, 'write', 2, 0, 1), entry(1, 'write', 1, 1, 2))).toEqual(['stale write']);
    expect(rulesOf(entry(0, 'read', 2, 0, 0), entry(1, 'write', 1, 0, 1))).toEqual(['stale write']);
  });

  it('what was refused changed nothing', () => {
    const denied = { ...entry(1, 'write', 1, 0, 1), accepted: false };
    expect(rulesOf(entry(0, 'write', 2, 0, 1), denied, entry(2, 'write', 2, 1, 2))).toEqual(nothing);
  });
});

describe('waiting', () => {
  const taken = error('LOCK_TAKEN', 'LockNotAcquiredError');
  const refusal = (at: number, waitMs: number | null = 100) => [
    call(0, 'a', 'p1', waitMs),
    refused(at, 'a', 'p1', taken),
  ];

  it('ends with its deadline', () => {
    expect(rulesOf(refusal(140))).toEqual(nothing);
    expect(rulesOf(refusal(160))).toEqual(['waiting']);
  });

  it('or with the request that was under way then, but not with one sent later', () => {
    expect(rulesOf(refusal(300), requested(90, 290, 'p1'))).toEqual(nothing);
    expect(rulesOf(refusal(300), requested(90, 200, 'p1'))).toEqual(['waiting']);
    expect(rulesOf(refusal(300), requested(110, 290, 'p1'))).toEqual(['waiting']);
    expect(rulesOf(refusal(300), requested(90, 290, 'p2'))).toEqual(['waiting']);
  });

  it('or with its own request behind one that was not sent, within a moment after the call', () => {
    const behind = (own: number) => [
      ...requested(-20, 180, 'p1', 'acquire', 'not-executed'),
      ...requested(own, 400, 'p1'),
      ...refusal(400),
    ];
    expect(rulesOf(behind(181))).toEqual(nothing);
    expect(rulesOf(behind(210))).toEqual(['waiting']);
    expect(rulesOf(refusal(400), requested(-20, 180, 'p1'), requested(181, 400, 'p1'))).toEqual(['waiting']);
  });

  it('time in which the process stands still does not count', () => {
    expect(rulesOf(refusal(300), frozen(90, 'p1', 290))).toEqual(nothing);
    expect(rulesOf(refusal(300), frozen(90, 'p2', 290))).toEqual(['waiting']);
  });

  it('is over at once when it is called off', () => {
    const abort: HistoryEvent = { type: 'abort', at: 20, process: 'p1', call: 'a' };
    const aborted = error('LOCK_ABORTED', 'LockAbortedError', true);
    const off = (at: number) => [call(0, 'a', 'p1', null), abort, refused(at, 'a', 'p1', aborted)];
    expect(rulesOf(off(20))).toEqual(nothing);
    expect(rulesOf(off(90), requested(10, 90, 'p1'))).toEqual(['waiting']);
  });

  it('every call ends, unless its process does', () => {
    expect(rulesOf(call(0, 'a', 'p1', null))).toEqual(['waiting']);
    expect(rulesOf(call(0, 'a', 'p1', null), { type: 'gone', at: 5, process: 'p1', how: 'crashed' })).toEqual(
      nothing,
    );
  });

  it('of several keys each is asked for once, one after the other', () => {
    const several: HistoryEvent = { ...call(0, 'a', 'p1', 0), keys: ['k', 'l'] } as HistoryEvent;
    const requests = [...requested(0, 100, 'p1'), ...requested(100, 200, 'p1')];
    expect(rulesOf(several, requests, refused(200, 'a', 'p1', taken))).toEqual(nothing);
    expect(rulesOf(several, requests, refused(300, 'a', 'p1', taken))).toEqual(['waiting']);
  });
});

describe('promptness', () => {
  const before = [hold(0, 'o1', 1), free(100, 'o1')];
  const waiter = (until: number, token = 2) => [
    call(10, 'a', 'p1', 10_000),
    granted(until, 'a', 'p1', { token }),
    ended(until, 'a', 'p1'),
  ];

  it('a free key is taken by whoever waits for it', () => {
    expect(rulesOf(before, waiter(150), hold(150, 'o2', 2), free(151, 'o2'))).toEqual(nothing);
    expect(rulesOf(before, waiter(400), hold(400, 'o2', 2), free(401, 'o2'))).toEqual(['promptness']);
  });

  it('by any of those who wait', () => {
    const other = [hold(120, 'o3', 2), free(390, 'o3')];
    expect(rulesOf(before, other, waiter(400, 3), hold(400, 'o2', 3), free(401, 'o2'))).toEqual(nothing);
  });

  it('who is in trouble, stands still or has asked already is excused', () => {
    const late = [before, waiter(400), hold(400, 'o2', 2), free(401, 'o2')];
    const trouble = (until: number, process?: string): HistoryEvent => ({
      type: 'trouble',
      at: 90,
      until,
      process,
      what: 'a fault',
    });
    expect(rulesOf(...late, trouble(390, 'p1'))).toEqual(nothing);
    expect(rulesOf(...late, trouble(390))).toEqual(nothing);
    expect(rulesOf(...late, trouble(390, 'p2'))).toEqual(['promptness']);
    expect(rulesOf(...late, trouble(200, 'p1'))).toEqual(['promptness']);
    expect(rulesOf(...late, frozen(90, 'p1', 390))).toEqual(nothing);
    expect(rulesOf(...late, requested(90, 390, 'p1'))).toEqual(nothing);
  });

  it('trouble lasts longer by the time in which the process could not notice it', () => {
    const late = [before, waiter(600), hold(600, 'o2', 2), free(601, 'o2')];
    const trouble: HistoryEvent = { type: 'trouble', at: 90, until: 290, process: 'p1', what: 'a fault' };
    expect(rulesOf(...late, trouble)).toEqual(['promptness']);
    expect(rulesOf(...late, trouble, frozen(90, 'p1', 390))).toEqual(nothing);
  });

  it('who is disturbed again and again has to be there after as much time in all', () => {
    const stops = [110, 135, 160, 185, 210, 235].map((at) => frozen(at, 'p1', at + 15));
    const taken = (at: number) => [before, waiter(at), hold(at, 'o2', 2), free(at + 1, 'o2'), ...stops];
    expect(rulesOf(...taken(270))).toEqual(nothing);
    expect(rulesOf(...taken(300))).toEqual(['promptness']);
  });

  it('a fair lock is kept for a place that nobody asks for any more, until its time is over or it is given up', () => {
    const late = [before, waiter(400), hold(400, 'o2', 2), free(401, 'o2')];
    const requestOf = (
      what: 'acquire' | 'undo',
      at: number,
      end?: { at: number; outcome: string },
    ): HistoryEvent[] => {
      const sent = { request: `${what} of o9`, process: 'p9' };
      const reply: HistoryEvent[] = end ? [{ type: 'reply', ...sent, ...end }] : [];
      return [{ type: 'request', at, ...sent, what, keys: ['k'], owners: ['p9:fair:1'] }, ...reply];
    };
    const queued = requestOf('acquire', 50, { at: 55, outcome: 'queued' });
    expect(rulesOf(...late, queued)).toEqual(['promptness']);
    const crash: HistoryEvent = { type: 'gone', at: 120, process: 'p9', how: 'crashed' };
    expect(rulesOf(...late, queued, crash)).toEqual(nothing);
    expect(rulesOf(...late, requestOf('acquire', 50))).toEqual(nothing);
    expect(rulesOf(...late, queued, requestOf('undo', 90, { at: 390, outcome: 'was not held' }))).toEqual(
      nothing,
    );
    expect(rulesOf(...late, queued, requestOf('undo', 90, { at: 200, outcome: 'was not held' }))).toEqual([
      'promptness',
    ]);
  });

  it('where nobody watched the store, nothing is said about it', () => {
    expect(rulesOf(waiter(400))).toEqual(nothing);
  });
});

describe('busy', () => {
  const refusedAt = (at: number) => [call(at, 'a', 'p1', 0), refused(at + 5, 'a', 'p1')];

  it('who is told that the key is taken is in the way of somebody', () => {
    expect(rulesOf(hold(0, 'o1', 1), free(100, 'o1'), refusedAt(50))).toEqual(nothing);
    expect(rulesOf(hold(0, 'o1', 1), free(100, 'o1'), refusedAt(150))).toEqual(['busy']);
  });

  it('or waits behind somebody of its own process', () => {
    const stored = [hold(0, 'o1', 1), free(100, 'o1')];
    const neighbour = [
      call(140, 'b', 'p1', 500),
      refused(200, 'b', 'p1', error('LOCK_STORE_FAILED', 'LockStoreError', true)),
    ];
    expect(rulesOf(stored, refusedAt(150), neighbour)).toEqual(nothing);
    expect(rulesOf(stored, refusedAt(150), requested(140, 170, 'p1', 'release'))).toEqual(nothing);
  });

  it('or asks for a key of which nobody knows who had it', () => {
    const stored = [hold(0, 'o1', 1), free(100, 'o1')];
    expect(rulesOf(stored, refusedAt(150), unprotected(153, 154, 'k'))).toEqual(nothing);
    expect(rulesOf(stored, refusedAt(150), unprotected(140, 149))).toEqual(['busy']);
    expect(rulesOf(stored, refusedAt(150), unprotected(153, 154, 'another'))).toEqual(['busy']);
  });

  it('or behind a place of the past', () => {
    const stored = [hold(0, 'o1', 1), free(100, 'o1')];
    expect(rulesOf(stored, refusedAt(150), { type: 'old lines', at: 110, until: 160 })).toEqual(nothing);
    expect(rulesOf(stored, refusedAt(150), { type: 'old lines', at: 110, until: 140 })).toEqual(['busy']);
  });
});

describe('loss', () => {
  const lease = (until: number) => [
    call(0, 'a', 'p1', 0),
    granted(0, 'a', 'p1', {}),
    believes(0, 'a', 'p1', until),
  ];

  it('is announced soon after the end of the lease', () => {
    expect(rulesOf(lease(100), announced(180, 'a', 'p1'), ended(500, 'a', 'p1'))).toEqual(nothing);
    expect(rulesOf(lease(100), announced(220, 'a', 'p1'), ended(500, 'a', 'p1'))).toEqual(['loss']);
    expect(rulesOf(lease(100), ended(500, 'a', 'p1'))).toEqual(['loss']);
    expect(rulesOf(lease(100), ended(90, 'a', 'p1'))).toEqual(nothing);
  });

  it('but not to a process that stands still', () => {
    expect(
      rulesOf(lease(100), frozen(90, 'p1', 400), announced(450, 'a', 'p1'), ended(500, 'a', 'p1')),
    ).toEqual(nothing);
  });

  it('is final: a lease that was over does not come back', () => {
    const late = [believes(150, 'a', 'p1', 400), ended(300, 'a', 'p1')];
    expect(rulesOf(lease(100), late)).toEqual(['loss']);
    expect(rulesOf(lease(1_000), announced(120, 'a', 'p1'), late)).toContain('loss');
    expect(rulesOf(lease(200), late)).toEqual(nothing);
    // What came while it stood still it read afterwards; what it had read before, it only did late.
    const stopped = { ...frozen(95, 'p1', 150), uninterrupted: false } as HistoryEvent;
    expect(rulesOf(lease(100), stopped, late)).toEqual(['loss']);
    expect(rulesOf(lease(100), { ...stopped, uninterrupted: true } as HistoryEvent, late)).toEqual(nothing);
    // A renewal counts from its reply, also when the process has no processor to write that down.
    const renewed = requested(80, 98, 'p1', 'extend');
    expect(rulesOf(lease(100), renewed, frozen(99, 'p1', 149), late)).toEqual(nothing);
    expect(rulesOf(lease(100), renewed, frozen(99, 'p1', 130), late)).toEqual(['loss']);
    expect(rulesOf(lease(100), requested(80, 120, 'p1', 'extend'), frozen(121, 'p1', 149), late)).toEqual([
      'loss',
    ]);
  });

  it('a renewal never makes a lease shorter', () => {
    const shorter = [believes(50, 'a', 'p1', 600), ended(70, 'a', 'p1')];
    expect(rulesOf(lease(1_000), shorter)).toEqual(['shortened']);
    expect(rulesOf(lease(600), shorter)).toEqual(nothing);
    expect(rulesOf(lease(1_000), shorter, unprotected(40, 60))).toEqual(nothing);
    const slow = [
      believes(450, 'a', 'p1', 600),
      ended(470, 'a', 'p1'),
      ...requested(40, 450, 'p1', 'extend'),
    ];
    expect(rulesOf(lease(1_000), slow)).toEqual(nothing);
  });

  it('the end of another lease takes away what that one had asked for, and no more', () => {
    const other = [
      call(0, 'b', 'p1', 0),
      granted(0, 'b', 'p1', { sharedWith: 'La' }),
      { type: 'extends', at: 5, process: 'p1', lease: 'Lb', ms: 1_000 } as HistoryEvent,
      believes(6, 'a', 'p1', 1_000),
      ended(40, 'b', 'p1'),
    ];
    const after = (until: number) => [believes(40, 'a', 'p1', until), ended(70, 'a', 'p1')];
    expect(rulesOf(lease(600), other, after(600))).toEqual(nothing);
    expect(rulesOf(lease(600), other, after(500))).toEqual(['shortened']);
    const [, , , longer] = other;
    expect(rulesOf(lease(600), longer!, after(600))).toEqual(['shortened']);
  });
});

describe('errors', () => {
  const of = (seen: ErrorSeen) => rulesOf(call(0, 'a', 'p1', 0), refused(5, 'a', 'p1', seen));

  it('are of the library, under their own name', () => {
    expect(of(error('LOCK_QUEUE_FULL', 'LockNotAcquiredError'))).toEqual(nothing);
    expect(of(error('LOCK_QUEUE_FULL', 'LockStoreError'))).toEqual(['errors']);
    expect(of(error(undefined, 'TypeError'))).toEqual(['errors']);
    expect(of(error('ECONNRESET', 'Error'))).toEqual(['errors']);
  });

  it('have a cause where there is one', () => {
    expect(of(error('LOCK_STORE_FAILED', 'LockStoreError', true))).toEqual(nothing);
    expect(of(error('LOCK_STORE_FAILED', 'LockStoreError'))).toEqual(['errors']);
    expect(of(error('LOCK_ABORTED', 'LockAbortedError'))).toEqual(['errors']);
    expect(of(error('LOCK_SHUTDOWN', 'LockAbortedError'))).toEqual(nothing);
  });

  it('of release and the like count too, and none goes uncaught', () => {
    const bad: HistoryEvent = {
      type: 'result',
      at: 1,
      process: 'p1',
      doing: 'release',
      error: error(undefined, 'TypeError'),
    };
    expect(rulesOf(bad)).toEqual(['errors']);
    expect(rulesOf({ type: 'unhandled', at: 1, message: 'a rejection' })).toEqual(['errors']);
  });
});

describe('leftovers', () => {
  it('are holds in the store and anything in the process', () => {
    expect(rulesOf({ type: 'left', at: 1, process: 'p1', key: 'k', owner: 'o1' })).toEqual(['leftovers']);
    expect(rulesOf({ type: 'usage', at: 1, process: 'p1', sizes: { timers: 0, keys: 1 } })).toEqual([
      'leftovers',
    ]);
    expect(rulesOf({ type: 'usage', at: 1, process: 'p1', sizes: { timers: 0 } })).toEqual(nothing);
  });
});

describe('a history', () => {
  it('may be written in any order', () => {
    const events = [holder('a', 'p1', 1, 0, 10), holder('b', 'p2', 2, 5, 20)].flat();
    expect(violationsIn([...events].reverse()).map(({ rule }) => rule)).toEqual(['exclusion']);
  });

  it('that names what it never introduced is refused', () => {
    expect(() => violationsIn([refused(0, 'a', 'p1')])).toThrow('no call "a"');
    expect(() => violationsIn([ended(0, 'a', 'p1')])).toThrow('no lease "La"');
  });

  it('is told as a timeline, with the violations where they belong', () => {
    const events = [holder('a', 'p1', 1, 0, 10), holder('b', 'p2', 2, 5, 20)].flat();
    const lines = timelineOf(events, violationsIn(events)).split('\n');
    expect(lines[0]).toMatch(/^ +0\.000 {2}p1 +a asks for "k" by withLock, waitMs 100$/);
    expect(lines.findIndex((line) => line.includes('VIOLATION (exclusion) La (p1) and Lb (p2)'))).toBe(6);
    expect(lines.at(-1)).toMatch(/^ +20\.000 {2}p2 +Lb ends$/);
  });

  it('says when a hold was to end', () => {
    const hold = { type: 'hold', at: 10, key: 'k', owner: 'me' } as const;
    expect(timelineOf([{ ...hold, until: 1_210 }], [])).toMatch(/me has "k" until 1210\.0, no token$/);
    expect(timelineOf([{ ...hold, token: 3 }], [])).toMatch(/me has "k", token 3$/);
  });
});

describe('callers that misbehave', () => {
  const claims = (at: number, name: string, process: string): HistoryEvent => ({
    type: 'claims',
    at,
    process,
    lease: `L${name}`,
    what: 'section',
  });
  const called = { ...call(0, 'a', 'p1', 10_000), leaseMs: 1_000 } as HistoryEvent;
  const lease = [called, granted(1, 'a', 'p1', {}), hold(1, 'o1', 1)];

  it('no section begins in a lease that is over, or without a hold', () => {
    const end = [ended(50, 'a', 'p1'), free(51, 'o1')];
    expect(rulesOf(lease, claims(40, 'a', 'p1'), end)).toEqual(nothing);
    expect(rulesOf(lease, end, claims(52, 'a', 'p1'))).toEqual(['entry']);
    expect(rulesOf(lease, free(30, 'o1'), claims(40, 'a', 'p1'), ended(41, 'a', 'p1'))).toEqual(['entry']);
  });

  it('nobody gets a longer lease than it asked for', () => {
    const armed = (until: number): HistoryEvent => ({ type: 'armed', at: 10, key: 'k', owner: 'o1', until });
    const end = [ended(50, 'a', 'p1'), free(51, 'o1')];
    expect(rulesOf(lease, armed(1_010), end)).toEqual(nothing);
    expect(rulesOf(lease, armed(9_010), end)).toEqual(['terms']);
    const extends_ = (at: number): HistoryEvent => {
      return { type: 'extends', at, process: 'p1', lease: 'La', ms: 9_000 };
    };
    expect(rulesOf(lease, extends_(9), armed(9_010), end)).toEqual(nothing);
    // The clocks of the store and of its clients may be so far apart.
    expect(rulesOf(lease, extends_(12), armed(9_010), end)).toEqual(nothing);
    expect(rulesOf(lease, extends_(13), armed(9_010), end)).toEqual(['terms']);
  });

  it('a least time is kept, however the work ends', () => {
    const least = [{ ...called, holdAtLeastMs: 500 } as HistoryEvent, ...lease.slice(1)];
    expect(rulesOf(least, ended(50, 'a', 'p1'), free(501, 'o1'))).toEqual(nothing);
    expect(rulesOf(least, ended(50, 'a', 'p1'), free(51, 'o1'))).toEqual(['minimum']);
  });

  it('in the end each key can be taken', () => {
    const last = { ...call(90, 'z', 'p1', 0), style: 'afterwards' } as HistoryEvent;
    const error_ = error('LOCK_TAKEN', 'LockNotAcquiredError');
    expect(rulesOf(last, refused(91, 'z', 'p1', error_))).toEqual(['dead key']);
  });
});

describe('permits', () => {
  const permit = (name: string, from: number, to: number, permits: number | null = 2): HistoryEvent[] => {
    const owner = `owner ${name}`;
    return [
      { ...call(from - 2, name, 'p1', 0), permits } as HistoryEvent,
      { type: 'hold', at: from - 1, key: 'k', owner },
      granted(from, name, 'p1', { token: 0, owner }),
      believes(from, name, 'p1', 1_000),
      ended(to, name, 'p1'),
      { type: 'free', at: to + 1, key: 'k', owner, how: 'released' },
    ];
  };

  it('are as many as was said, and never one more', () => {
    expect(rulesOf(permit('a', 10, 90), permit('b', 20, 80))).toEqual(nothing);
    expect(rulesOf(permit('a', 10, 90), permit('b', 20, 80), permit('c', 84, 88, null))).toEqual(nothing);
    const tooMany = [permit('a', 10, 90), permit('b', 20, 80), permit('c', 30, 70, null)].flat();
    // In the store, and in the minds of the callers.
    expect(violationsIn(tooMany).map(({ rule }) => rule)).toEqual(['limit', 'limit']);
    const inMind = tooMany.filter(({ type }) => type !== 'hold' && type !== 'free');
    expect(rulesOf(inMind)).toEqual(['limit']);
  });

  it('may be too many in the minds of callers while the store stood by nothing', () => {
    const opened: HistoryEvent[] = [
      { type: 'unprotected', at: 25, key: 'k', until: 200, why: 'forced open' },
      { type: 'free', at: 25, key: 'k', owner: 'owner a', how: 'forced' },
      { type: 'free', at: 25, key: 'k', owner: 'owner b', how: 'forced' },
    ];
    const holders = [permit('a', 10, 90), permit('b', 20, 80)].flat();
    const forced = holders.filter(({ type }) => type !== 'free');
    expect(rulesOf(forced, opened, permit('c', 30, 70))).toEqual(nothing);
  });

  it('that are free are taken by those who wait for one', () => {
    const waiter: HistoryEvent = { ...call(0, 'w', 'p2', 900), permits: 2 } as HistoryEvent;
    const served = granted(700, 'w', 'p2', { token: 0, owner: 'owner w' });
    const last = ended(701, 'w', 'p2');
    expect(rulesOf(permit('a', 2, 690), permit('b', 3, 689), waiter, served, last)).toEqual(nothing);
    expect(rulesOf(permit('a', 2, 690), permit('b', 3, 300), waiter, served, last)).toEqual(['promptness']);
  });

  it('are not given out after they have ended in the store', () => {
    const events = permit('a', 10, 90).map((one) => (one.type === 'free' ? { ...one, at: 50 } : one));
    expect(rulesOf(events)).toEqual(['foundation']);
  });
});
