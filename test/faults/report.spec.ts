import { describe, expect, it } from 'vitest';
import { inOrder, type HistoryEvent } from '../checker/history.js';
import { FAULTS } from './catalogue/index.js';
import { reportOf } from './report/report.js';
import { shortestPiece } from './report/shortest-piece.js';
import { judge } from './rules/judge.js';
import { plan, scheduleText } from './schedule/schedule.js';
import type { Fitness } from './topology/topology.js';

const FITNESS: Fitness = {
  shape: 'one',
  seats: 3,
  nodes: 1,
  sound: 1,
  links: 1,
  keepsData: true,
  settableClock: false,
};
const LENGTH = { faults: 11, forMs: 8_000 };

describe('a schedule', () => {
  it('comes from the seed and the number of the round, and from nothing else', () => {
    const text = (seed: string, round: number) => scheduleText(plan(seed, round, FITNESS, LENGTH));
    expect(text('a', 3)).toBe(text('a', 3));
    expect(text('a', 3)).not.toBe(text('a', 4));
    expect(text('a', 3)).not.toBe(text('b', 3));
  });

  it('has every kind of fault that fits within a few rounds, and none that does not', () => {
    const met = [0, 1, 2].flatMap((round) => plan('a', round, FITNESS, LENGTH).map(({ fault }) => fault));
    const fitting = FAULTS.filter((fault) => fault.fits(FITNESS)).map(({ name }) => name);
    expect(new Set(met)).toEqual(new Set(fitting));
    expect(fitting.length).toBeLessThan(FAULTS.length);
  });
});

/** One caller in its lock, as a worker writes it down. */
const section = (at: number, process: string, key: string, token: number, forMs: number): HistoryEvent[] => {
  const call = `${process}.c${token}`;
  const lease = `${process}.L${token}`;
  const until = at + 1_000;
  return [
    { type: 'call', at: at - 2, process, call, keys: [key], waitMs: 500, style: 'withLock' },
    { type: 'request', at: at - 1, process, request: `${process}#${token}`, what: 'acquire', keys: [key] },
    { type: 'reply', at: at - 0.5, process, request: `${process}#${token}`, outcome: 'granted' },
    { type: 'granted', at, process, call, lease, parts: [{ key, token }] },
    { type: 'believes', at, process, lease, key, until },
    { type: 'ended', at: at + forMs, process, lease },
  ];
};

const quietSections = (): HistoryEvent[] =>
  Array.from({ length: 500 }, (_, i) => section(20 * i, `w${i % 3}`, `lock:key-${i % 7}`, i + 1, 10)).flat();

const judged = (events: readonly HistoryEvent[]) =>
  judge(events, { shape: 'one', instances: new Map(), watchdogMs: 0 });

const reportOn = (events: readonly HistoryEvent[]): string =>
  reportOf({
    title: 'Round 3 of seed 42',
    again: 'npm run test:faults -- --seed 42 --round 3',
    schedule: scheduleText(plan('42', 3, FITNESS, LENGTH)),
    events,
    violations: judged(events),
    judge: judged,
  });

describe('the report of a round that failed', () => {
  const overlapping = [
    ...quietSections(),
    ...section(5_000, 'w1', 'lock:order', 9_001, 100),
    ...section(5_050, 'w2', 'lock:order', 9_002, 100),
  ];

  it('names what was wrong, how to see it again, and what was done', () => {
    const report = reportOn(overlapping);
    expect(report).toContain('Round 3 of seed 42: 1 violation\n');
    expect(report).toContain('npm run test:faults -- --seed 42 --round 3');
    expect(report).toContain(
      'exclusion: w1.L9001 (w1) and w2.L9002 (w2) both believed to have "lock:order" for 50 ms',
    );
    for (const line of scheduleText(plan('42', 3, FITNESS, LENGTH)).split('\n'))
      expect(report).toContain(line);
  });

  it('shows the shortest piece of history in which it can be seen, as a timeline', () => {
    const timeline = reportOn(overlapping)
      .split('\n')
      .filter((line) => /^ +\d+\.\d{3} /.test(line))
      .map((line) => line.trim().replace(/ +/g, ' '));
    expect(timeline).toEqual([
      '4998.000 w1 w1.c9001 asks for "lock:order" by withLock, waitMs 500',
      '4999.000 w1 > w1#9001 acquire "lock:order"',
      '4999.500 w1 < w1#9001 granted',
      '5000.000 w1 w1.c9001 gets w1.L9001: "lock:order" token 9001',
      '5000.000 w1 w1.L9001 believes in "lock:order" until 6000.0',
      '5048.000 w2 w2.c9002 asks for "lock:order" by withLock, waitMs 500',
      '5049.000 w2 > w2#9002 acquire "lock:order"',
      '5049.500 w2 < w2#9002 granted',
      '5050.000 w2 w2.c9002 gets w2.L9002: "lock:order" token 9002',
      '5050.000 w2 w2.L9002 believes in "lock:order" until 6050.0',
      '5050.000 !!!! VIOLATION (exclusion) w1.L9001 (w1) and w2.L9002 (w2) both believed to have "lock:order" for 50 ms',
      '5100.000 w1 w1.L9001 ends',
      '5150.000 w2 w2.L9002 ends',
    ]);
  });

  it('does not mistake a hold whose caller was left out for one that nobody has', () => {
    const key = 'lock:order';
    const processes = new Map(['w0', 'w1', 'w2'].map((name) => [name, name]));
    const hold = (at: number, owner: string, token: number): HistoryEvent[] => [
      { type: 'hold', at, key, owner, token },
      { type: 'free', at: at + 2_500, key, owner, how: 'expired' },
    ];
    const events = [
      ...section(1_000, 'w1', key, 7, 2_400),
      ...hold(1_000, 'w1:7', 7),
      ...hold(4_000, 'w1:8', 8),
      ...quietSections(),
    ];
    const verdict = (piece: readonly HistoryEvent[]) =>
      judge(piece, { shape: 'one', instances: processes, watchdogMs: 0 });
    const [ghost, ...others] = verdict(events).filter(({ rule }) => rule === 'ghosts');
    expect(others).toEqual([]);
    const piece = shortestPiece(events, ghost!, verdict);
    expect(piece.violation.text).toContain('w1:8');
    expect(piece.events).toContainEqual(hold(4_000, 'w1:8', 8)[0]);
  });

  it('shows with it what excused others, and why it did not excuse this', () => {
    const report = reportOn([
      ...overlapping,
      { type: 'unprotected', at: 4_000, until: 5_045, why: 'FLUSHALL' },
      { type: 'unprotected', at: 7_000, until: 8_000, why: 'another FLUSHALL' },
    ]);
    expect(report).toContain('FLUSHALL: no key protected until 5045.0');
    expect(report).not.toContain('another FLUSHALL');
  });

  it('stays readable when nothing can be left out', () => {
    const calls = Array.from({ length: 300 }, (_, i): HistoryEvent => {
      return {
        type: 'call',
        at: i,
        process: 'w1',
        call: `c${i}`,
        keys: ['k'],
        waitMs: null,
        style: 'acquire',
      };
    });
    const report = reportOf({
      title: 'A round',
      again: 'so',
      schedule: '',
      events: calls,
      violations: [{ rule: 'all', at: 0, text: 'all 300' }],
      judge: (events) => (events.length === 300 ? [{ rule: 'all', at: 0, text: 'all 300' }] : []),
    });
    expect(inOrder(calls)).toHaveLength(300);
    expect(report).toMatch(/… \d+ lines …/);
    expect(report.split('\n').length).toBeLessThan(150);
  });
});
