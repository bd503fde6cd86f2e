import { describe, expect, it } from 'vitest';
import type { Comparison, Row } from '../comparison.js';
import { OURS, type Contender } from '../contenders.js';
import { chartSvg } from './chart/index.js';
import { spreadOut } from './chart/labels.js';
import { scaleFor } from './chart/scale.js';
import { pageOf } from './page.js';
import type { Report } from './report.js';
import { tableOf } from './table.js';
import { pagesOf } from './write.js';
import { workloads } from '../workloads/index.js';

/** What there is room for, in bold letters of 16 px on the narrowest chart. */
const LONGEST_TITLE = 85;

const row = (name: string, at: number | undefined, values: number[], more: Partial<Row> = {}): Row => ({
  contender: { name, subject: name, style: 'lock', renews: true } satisfies Contender,
  at,
  values: { rate: values },
  violations: 0,
  failures: 0,
  trouble: undefined,
  broke: false,
  ...more,
});

const comparisonOf = (rows: readonly Row[], points?: readonly number[]): Comparison => ({
  metrics: [{ key: 'rate', what: 'locks', unit: '/s', better: 'more' }],
  axis: points && { what: 'callers', points },
  rows,
});

const reportOf = (comparison: Comparison): Report => ({
  machine: { when: 'today', node: 'v20', redis: '7', cpu: 'two', memory: '4 GB', system: 'linux' },
  quick: false,
  rounds: 5,
  growthRounds: 3,
  cycles: 1,
  peers: { redlock: '5.0.0-beta.2' },
  workloads: [
    {
      name: 'one',
      title: 'One workload',
      seconds: 1,
      findings: [],
      violations: 0,
      comparison,
      charts: [{ kind: 'lines', file: 'one.svg', title: 'A < B & C', metric: 'rate' }],
    },
  ],
});

describe('the report of the benchmark', () => {
  it('names libraries that violate exclusion or did not finish, in the table and on the page', () => {
    const comparison = comparisonOf([
      row('leaky', undefined, [5], { violations: 2 }),
      row('stuck', undefined, [], { broke: true, trouble: 'no caller was served' }),
    ]);
    for (const text of [tableOf(reportOf(comparison).workloads), pageOf(reportOf(comparison))]) {
      expect(text).toContain('leaky: VIOLATES EXCLUSION (2 sections)');
      expect(text).toContain('stuck: did not finish: no caller was served');
    }
  });

  it('shows medians with the least and the greatest', () => {
    expect(pageOf(reportOf(comparisonOf([row('peer', undefined, [100, 300, 200])])))).toContain(
      '| peer | 200/s (100/s to 300/s) |',
    );
  });

  it('gives the quorum, the crowds and ZooKeeper pages of their own', () => {
    const report = reportOf(comparisonOf([]));
    const named = [
      'free-keys',
      'quorum-hot',
      'scale',
      'cluster',
      'memory',
      'stores',
      'zookeeper-server-hot',
    ].map((name) => ({
      ...report.workloads[0]!,
      name,
    }));
    const pages = [...pagesOf({ ...report, workloads: named })].map(([folder, { workloads }]) => [
      folder,
      ...workloads.map(({ name }) => name),
    ]);
    expect(pages).toEqual([
      ['', 'free-keys', 'memory'],
      ['quorum', 'quorum-hot', 'cluster'],
      ['scale', 'scale'],
      ['stores', 'stores'],
      ['zookeeper', 'zookeeper-server-hot'],
    ]);
  });

  it('sums up a workload in one line: this library, and the best other one that violates no exclusion', () => {
    const comparison = comparisonOf([
      { ...row('', undefined, [0.9]), contender: OURS },
      row('slower', undefined, [0.5]),
      row('better', undefined, [0.7]),
      row('leaky', undefined, [0.95], { violations: 1 }),
    ]);
    const report = reportOf({
      ...comparison,
      metrics: comparison.metrics.map((metric) => ({ ...metric, key: 'jain' })),
      rows: comparison.rows.map((one) => ({ ...one, values: { jain: one.values['rate']! } })),
    });
    const named = { ...report, workloads: report.workloads.map((one) => ({ ...one, name: 'processes' })) };
    expect(pageOf(named)).toMatch(
      /\| 8 processes want one key: Jain's index \| [^|]*0\.9[^|]* \| [^|]*\(better\) \|/,
    );
    expect(pageOf(report)).not.toContain('## Summary');
  });
});

describe('charts', () => {
  it('name every line where it ends, mark libraries that did not finish, and fit both colour schemes', () => {
    const comparison = comparisonOf(
      [
        row('ours', 1, [10]),
        row('ours', 10, [20]),
        row('stuck', 1, [5]),
        row('stuck', 10, [], { broke: true }),
      ],
      [1, 10],
    );
    const svg = chartSvg({ kind: 'lines', file: 'x.svg', title: 'A < B & C', metric: 'rate' }, comparison);
    expect(svg).toContain('ours  20/s');
    expect(svg).toContain('stuck  did not finish');
    expect(svg).toContain('prefers-color-scheme:dark');
    expect(svg).toContain('A &lt; B &amp; C');
    expect(svg).not.toContain('NaN');
  });

  it('have titles that fit, in all workloads', () => {
    const titles = workloads.flatMap(({ charts = [] }) => charts.map(({ title }) => title));
    expect(titles.length).toBeGreaterThan(10);
    expect(titles.filter((title) => title.length > LONGEST_TITLE)).toEqual([]);
  });

  it('mark in bars a library that violates exclusion', () => {
    const comparison = comparisonOf([row('leaky', undefined, [5], { violations: 1 })]);
    const svg = chartSvg({ kind: 'bars', file: 'x.svg', title: 'Bars', metrics: ['rate'] }, comparison);
    expect(svg).toContain('violates exclusion');
  });

  it('keep labels apart, in order, within the limits', () => {
    const placed = spreadOut([{ wanted: 95 }, { wanted: 50 }, { wanted: 96 }, { wanted: 52 }], 10, 0, 100);
    const ys = placed.map(({ y }) => y);
    expect(placed.map(({ label }) => label.wanted)).toEqual([50, 52, 95, 96]);
    ys.slice(1).forEach((y, at) => expect(y - ys[at]!).toBeGreaterThanOrEqual(10));
    expect(ys.at(-1)).toBeLessThanOrEqual(100);
  });

  it('choose a logarithmic scale for values that lie far apart, with every value on it', () => {
    const scale = scaleFor([3, 40, 7_000], 100, 0);
    expect(scale.isLogarithmic).toBe(true);
    expect(scale.ticks).toEqual([1, 10, 100, 1_000, 10_000]);
    expect(scale.at(10_000)).toBeCloseTo(0);
    expect(scaleFor([3, 9], 0, 100).ticks).toEqual([0, 2, 4, 6, 8, 10]);
  });
});
