import type { RoundResult } from '../round.js';

interface Row {
  times: number;
  calls: number;
  granted: number;
  failed: number;
  violations: number;
}

/** Effects of a fault may be seen a little later. */
const AFTERWARDS_MS = 1_000;
const HEAD = ['fault', 'times', 'calls', 'granted', 'store failed', 'violations'];

/** What happened while each kind of fault was at work: of faults at the same time each gets all. */
export class FaultTable {
  private readonly rows = new Map<string, Row>();

  add({ inflicted, events, violations }: RoundResult): void {
    for (const { planned, from, to } of inflicted) {
      const row = this.rowOf(planned.fault);
      const during = ({ at }: { at: number }): boolean => at >= from && at <= to + AFTERWARDS_MS;
      row.times++;
      row.violations += violations.filter(during).length;
      for (const event of events) {
        if (!during(event)) continue;
        if (event.type === 'call') row.calls++;
        else if (event.type === 'granted') row.granted++;
        else if (event.type === 'refused' && event.error?.code === 'LOCK_STORE_FAILED') row.failed++;
      }
    }
  }

  text(): string {
    const lines = [...this.rows]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, row]) =>
        [name, row.times, row.calls, row.granted, row.failed, row.violations].map(String),
      );
    const all = [HEAD, ...lines];
    const widths = HEAD.map((_, column) => Math.max(...all.map((line) => line[column]!.length)));
    const cell = (text: string, i: number): string =>
      i === 0 ? text.padEnd(widths[i]!) : text.padStart(widths[i]!);
    return all.map((line) => line.map(cell).join('  ')).join('\n');
  }

  private rowOf(name: string): Row {
    const row = this.rows.get(name) ?? { times: 0, calls: 0, granted: 0, failed: 0, violations: 0 };
    this.rows.set(name, row);
    return row;
  }
}
