import type { RoundResult } from '../round.js';
import { columnsOf } from './columns.js';

/** What the apps of one state observed of one fault on one topology. */
interface Row {
  readonly topology: string;
  readonly fault: string;
  readonly app: string;
  /** How often an app was there. */
  times: number;
  /** How often servers accepted no writes meanwhile, or other ones afterwards. */
  failovers: number;
  /** How long it took at most until the app acquired a key again, in ms. */
  slowestMs: number;
}

const HEAD = ['topology', 'fault', 'app', 'times', 'failovers', 'slowest ms'];
/** So many columns are text; the others are numbers. */
const TEXTS = 3;

/** Which failovers apps observed, and how soon each of them acquired a key again. */
export class FailoverTable {
  private readonly rows = new Map<string, Row>();

  add({ topology, events }: RoundResult): void {
    for (const event of events) {
      if (event.type !== 'failover') continue;
      const overAt = Math.max(event.at, event.outages.at(-1)?.to ?? event.at);
      for (const { process, connection: app } of event.apps) {
        const row = this.rowOf({ topology, fault: event.what, app, times: 0, failovers: 0, slowestMs: 0 });
        const served = events.find(
          (one) => one.type === 'served' && one.process === process && one.at >= overAt,
        );
        row.times++;
        if (event.outages.length > 0) row.failovers++;
        row.slowestMs = Math.max(row.slowestMs, (served?.at ?? Infinity) - overAt);
      }
    }
  }

  text(): string {
    const lines = [...this.rows.values()]
      .map((row) => [row.topology, row.fault, row.app, ...numbersOf(row).map(String)])
      .sort((a, b) => a.join().localeCompare(b.join()));
    return columnsOf([HEAD, ...lines], TEXTS);
  }

  private rowOf(row: Row): Row {
    const name = [row.topology, row.fault, row.app].join();
    const known = this.rows.get(name) ?? row;
    this.rows.set(name, known);
    return known;
  }
}

const numbersOf = ({ times, failovers, slowestMs }: Row): number[] => [
  times,
  failovers,
  Math.round(slowestMs),
];
