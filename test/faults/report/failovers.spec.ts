import { expect, it } from 'vitest';
import type { HistoryEvent } from '../../checker/history.js';
import type { RoundResult } from '../round.js';
import { FailoverTable } from './failovers.js';

const apps = [
  { process: 'app1', connection: 'idle' },
  { process: 'app2', connection: 'no connection' },
];

const failover = (at: number, outages: readonly { from: number; to: number }[]): HistoryEvent => ({
  type: 'failover',
  at,
  what: 'promotion',
  outages,
  limitMs: 2_000,
  apps,
});

const served = (process: string, at: number): HistoryEvent => ({ type: 'served', process, call: 'c', at });

const round = (...events: readonly HistoryEvent[]): RoundResult => ({
  plan: { name: 'r0', seed: '1', schedule: [], callers: 1 },
  topology: 'Sentinel',
  shape: 'sentinel',
  events,
  inflicted: [],
  violations: [],
  judge: () => [],
});

it('the table of failovers has the slowest app of each state, counted from when writes are accepted', () => {
  const table = new FailoverTable();
  table.add(
    round(
      failover(100, [{ from: 110, to: 300 }]),
      served('app1', 200),
      served('app2', 320),
      served('app1', 350),
    ),
  );
  table.add(round(failover(1_000, []), served('app1', 1_020), served('app2', 1_090)));
  expect(table.text().split('\n')).toEqual([
    'topology  fault      app            times  failovers  slowest ms',
    'Sentinel  promotion  idle               2          1          50',
    'Sentinel  promotion  no connection      2          1          90',
  ]);
});
