import { describe, expect, it } from 'vitest';
import { violationsIn } from './checker.js';
import type { HistoryEvent, UsedEvent, UsesEvent } from './history.js';

const rulesOf = (...events: readonly (readonly HistoryEvent[])[]): string[] => [
  ...new Set(violationsIn(events.flat()).map(({ rule }) => rule)),
];

const nothing: string[] = [];

let uses = 0;

/** Somebody does something from one moment to another. */
const use = (
  about: Pick<UsesEvent, 'object' | 'what'> & Partial<UsesEvent>,
  [from, to]: readonly [number, number],
  end: Pick<UsedEvent, 'result' | 'error' | 'unknown'> = { result: true },
): HistoryEvent[] => {
  const { process = 'p1' } = about;
  const name = `${process}.u${++uses}`;
  const key = about.object === 'semaphore' ? 'gate' : 'door';
  const begun: HistoryEvent = { type: 'uses', at: from, use: name, key, amount: 1, ...about, process };
  return [begun, { type: 'used', at: to, process, use: name, ...end }];
};

const semaphore = { object: 'semaphore' } as const;
const latch = { object: 'latch' } as const;

const set = (amount: number) => use({ ...semaphore, what: 'set', amount }, [0, 1]);
const took = (from: number, to: number, amount = 1) =>
  use({ ...semaphore, what: 'take', amount, waitMs: 5_000 }, [from, to]);
const gave = (from: number, to: number, amount = 1) => use({ ...semaphore, what: 'add', amount }, [from, to]);
const sawFree = (at: number, result: number) => use({ ...semaphore, what: 'look' }, [at, at + 1], { result });

const STORE_FAILED = { name: 'LockStoreError', code: 'LOCK_STORE_FAILED', hasCause: true, message: '' };
const noReply = { error: STORE_FAILED, unknown: true } as const;
const refused = { error: STORE_FAILED } as const;
const taken = { error: { name: 'LockNotAcquiredError', code: 'LOCK_TAKEN', hasCause: false, message: '' } };

const lost: HistoryEvent[] = [{ type: 'unprotected', at: 50, until: 60, why: 'FLUSHALL' }];

describe('permits of a semaphore', () => {
  it('go to no more callers at once than there are', () => {
    expect(rulesOf(set(2), took(2, 3), took(4, 5), gave(6, 7), took(8, 9))).toEqual(nothing);
    expect(rulesOf(set(2), took(2, 3), took(4, 5), took(8, 9))).toEqual(['semaphore']);
    expect(rulesOf(set(3), took(2, 3, 2), took(4, 5, 2))).toEqual(['semaphore']);
  });

  it('may come from a release without an answer, and once only', () => {
    const maybe = use({ ...semaphore, what: 'add' }, [6, 7], noReply);
    expect(rulesOf(set(1), took(2, 3), maybe, took(8, 9))).toEqual(nothing);
    expect(rulesOf(set(1), took(2, 3), maybe, took(8, 9), took(10, 11))).toEqual(['semaphore']);
  });

  it('come from no release that was refused', () => {
    const no = use({ ...semaphore, what: 'add' }, [6, 7], refused);
    expect(rulesOf(set(1), took(2, 3), no, took(8, 9))).toEqual(['semaphore']);
  });

  it('may be there once more when the store has lost its data', () => {
    const again = use({ ...semaphore, what: 'set' }, [51, 52]);
    expect(rulesOf(set(1), took(2, 3), lost, again, took(53, 54))).toEqual(nothing);
    expect(rulesOf(set(1), took(2, 3), again, took(53, 54), took(55, 56))).toEqual(['semaphore']);
  });

  it('are counted right by whoever looks', () => {
    expect(rulesOf(set(2), sawFree(2, 2), took(4, 5), sawFree(6, 1))).toEqual(nothing);
    expect(rulesOf(set(2), took(4, 5), sawFree(6, 2))).toEqual(['semaphore']);
    expect(rulesOf(set(2), took(4, 5), gave(6, 7), sawFree(8, 1))).toEqual(['semaphore']);
    const maybe = use({ ...semaphore, what: 'take', waitMs: 0 }, [4, 5], noReply);
    for (const free of [1, 2]) expect(rulesOf(set(2), maybe, sawFree(6, free))).toEqual(nothing);
    expect(rulesOf(set(2), maybe, sawFree(6, 0))).toEqual(['semaphore']);
  });

  it('are not lost by a caller that was refused', () => {
    const late = use({ ...semaphore, what: 'take', waitMs: 0 }, [4, 5], taken);
    expect(rulesOf(set(1), late, sawFree(6, 1))).toEqual(nothing);
    expect(rulesOf(set(1), late, sawFree(6, 0))).toEqual(['semaphore']);
  });

  it('that are free go to those who wait', () => {
    const holder = [took(2, 3), gave(100, 101)].flat();
    expect(rulesOf(set(1), holder, took(10, 150))).toEqual(nothing);
    expect(rulesOf(set(1), holder, took(10, 400))).toEqual(['semaphore']);
    const inVain = use({ ...semaphore, what: 'take', waitMs: 400 }, [10, 410], taken);
    expect(rulesOf(set(1), holder, inVain)).toEqual(['semaphore']);
  });

  it('may keep somebody waiting behind one of its process that wants more', () => {
    const greedy = use({ ...semaphore, what: 'take', amount: 2, waitMs: 900 }, [4, 904], taken);
    expect(rulesOf(set(2), took(2, 3), greedy, took(10, 905))).toEqual(nothing);
    const elsewhere = use({ ...semaphore, what: 'take', waitMs: 5_000, process: 'p2' }, [10, 905]);
    expect(rulesOf(set(2), took(2, 3), greedy, elsewhere)).toEqual(['semaphore']);
  });

  it('are waited for as long as the caller said', () => {
    const busy = [set(1), took(2, 3)].flat();
    const early = use({ ...semaphore, what: 'take', waitMs: 400 }, [10, 200], taken);
    expect(rulesOf(busy, early)).toEqual(['waiting']);
    const late = use({ ...semaphore, what: 'take', waitMs: 400 }, [10, 700], taken);
    expect(rulesOf(busy, late)).toEqual(['waiting']);
  });
});

describe('a latch', () => {
  const setTo = (amount: number) => use({ ...latch, what: 'set', amount }, [0, 1]);
  const down = (from: number, to: number) => use({ ...latch, what: 'countDown' }, [from, to]);
  const waited = (from: number, to: number) => use({ ...latch, what: 'wait', waitMs: 5_000 }, [from, to]);
  const sawLeft = (at: number, result: number) => use({ ...latch, what: 'look' }, [at, at + 1], { result });

  it('opens when all have counted down, and not before', () => {
    expect(rulesOf(setTo(2), waited(2, 30), down(10, 11), down(20, 21))).toEqual(nothing);
    expect(rulesOf(setTo(2), waited(2, 15), down(10, 11), down(20, 21))).toEqual(['latch']);
  });

  it('may have opened by a count that had no answer, and by none that was refused', () => {
    const maybe = use({ ...latch, what: 'countDown' }, [20, 21], noReply);
    expect(rulesOf(setTo(2), waited(2, 30), down(10, 11), maybe)).toEqual(nothing);
    const no = use({ ...latch, what: 'countDown' }, [20, 21], refused);
    expect(rulesOf(setTo(2), waited(2, 30), down(10, 11), no)).toEqual(['latch']);
  });

  it('is open when the store has lost its data', () => {
    expect(rulesOf(setTo(2), waited(2, 55), lost)).toEqual(nothing);
  });

  it('lets everybody go on as soon as it is open', () => {
    expect(rulesOf(setTo(1), down(10, 11), waited(2, 90))).toEqual(nothing);
    expect(rulesOf(setTo(1), down(10, 11), waited(2, 400))).toEqual(['latch']);
  });

  it('has what is left of its count', () => {
    expect(rulesOf(setTo(3), down(10, 11), sawLeft(12, 2))).toEqual(nothing);
    expect(rulesOf(setTo(3), down(10, 11), sawLeft(12, 3))).toEqual(['latch']);
    expect(rulesOf(setTo(3), down(10, 11), sawLeft(12, 1))).toEqual(['latch']);
  });
});

describe('an error of a semaphore or a latch', () => {
  it('is one of the library, with its cause', () => {
    const strange = { error: { name: 'TypeError', code: undefined, hasCause: false, message: '' } };
    expect(rulesOf(use({ ...semaphore, what: 'add' }, [1, 2], strange))).toEqual(['errors']);
  });
});
