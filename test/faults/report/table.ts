import type { RoundResult } from '../round.js';
import { overlapsIn } from '../rules/overlaps.js';
import { columnsOf } from './columns.js';

interface Row {
  times: number;
  calls: number;
  granted: number;
  failed: number;
  violations: number;
}

/** What one topology went through. */
interface Runs extends Row {
  overlaps: number;
  readonly faults: Map<string, Row>;
}

/** Effects of a fault may be seen a little later. */
const AFTERWARDS_MS = 1_000;
const HEAD = [
  'topology',
  'fault',
  'runs',
  'calls',
  'granted',
  'store failed',
  'violations',
  'overlaps',
  'per 1,000',
];
/** So many columns are text; the others are numbers. */
const TEXTS = 2;

const emptyRow = (): Row => ({ times: 0, calls: 0, granted: 0, failed: 0, violations: 0 });

/** What happened while each kind of fault was at work, on each topology: of faults at the same time each gets all. */
export class FaultTable {
  private readonly topologies = new Map<string, Runs>();

  add({ topology, inflicted, events, violations }: RoundResult): void {
    const runs = this.runsOf(topology);
    runs.overlaps += overlapsIn(events);
    count(runs, { events, violations }, () => true);
    for (const { planned, from, to } of inflicted) {
      const row = runs.faults.get(planned.fault) ?? emptyRow();
      runs.faults.set(planned.fault, row);
      count(row, { events, violations }, ({ at }) => at >= from && at <= to + AFTERWARDS_MS);
    }
  }

  text(): string {
    const lines = [...this.topologies].flatMap(([topology, runs]) => {
      const faults = [...runs.faults].sort(([a], [b]) => a.localeCompare(b));
      const perThousand = runs.granted === 0 ? 0 : (1_000 * runs.overlaps) / runs.granted;
      return [
        ...faults.map(([fault, row]) => [topology, fault, ...numbersOf(row), '', '']),
        [topology, 'all rounds', ...numbersOf(runs), String(runs.overlaps), perThousand.toFixed(2)],
      ];
    });
    return columnsOf([HEAD, ...lines], TEXTS);
  }

  private runsOf(topology: string): Runs {
    const runs = this.topologies.get(topology) ?? {
      ...emptyRow(),
      overlaps: 0,
      faults: new Map<string, Row>(),
    };
    this.topologies.set(topology, runs);
    return runs;
  }
}

const count = (
  row: Row,
  { events, violations }: Pick<RoundResult, 'events' | 'violations'>,
  isCounted: (what: { readonly at: number }) => boolean,
): void => {
  row.times++;
  row.violations += violations.filter(isCounted).length;
  for (const event of events) {
    if (!isCounted(event)) continue;
    if (event.type === 'call') row.calls++;
    else if (event.type === 'granted') row.granted++;
    else if (event.type === 'refused' && event.error?.code === 'LOCK_STORE_FAILED') row.failed++;
  }
};

const numbersOf = ({ times, calls, granted, failed, violations }: Row): string[] =>
  [times, calls, granted, failed, violations].map(String);
